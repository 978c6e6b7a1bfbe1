"""Transposition with a swizzled tile."""

from warpproof import In, Out, Size, cdiv, contract, f32

M, N = Size("M", min=1, max=2**20), Size("N", min=1, max=2**20)


@contract(kernel="kernel.cu::transpose_xor", grid=(cdiv(N, 32), cdiv(M, 32)), block=(32, 8))
def transpose_xor(x: In[f32, M, N], y: Out[f32, N, M], M: M, N: N):
    return {"y": x.T}
