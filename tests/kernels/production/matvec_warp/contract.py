"""Matrix-vector product, a warp a row."""

from warpproof import In, Out, Size, cdiv, contract, f32

M, N = Size("M", min=1, max=2**20), Size("N", min=1, max=2**20)


@contract(kernel="kernel.cu::matvec_warp", grid=(cdiv(M, 4),), block=128)
def matvec_warp(A: In[f32, M, N], x: In[f32, N], y: Out[f32, M], M: M, N: N):
    return {"y": A @ x}
