"""A double-buffered cp.async matrix product."""

from warpproof import In, Out, Size, contract, f32

M, N = Size("M", min=64, max=2**14, multiple_of=64), Size("N", min=64, max=2**14, multiple_of=64)
K = Size("K", min=16, max=2**14, multiple_of=16, examples=(48,))


@contract(kernel="kernel.cu::sgemm_cp_async", grid=(N // 64, M // 64), block=256)
def sgemm_cp_async(A: In[f32, M, K], B: In[f32, K, N], C: Out[f32, M, N], N: N, K: K):
    return {"C": A @ B}
