"""y = transpose(x) through a padded shared tile."""

from warpproof import In, Out, Size, contract, f32

M, N = Size("M", min=1, max=2**20), Size("N", min=1, max=2**20)


@contract(kernel="transpose.cu::transpose", grid=((N + 31) // 32, (M + 31) // 32), block=(32, 8))
def transpose(x: In[f32, M, N], y: Out[f32, N, M], M: M, N: N):
    return {"y": x.T}
