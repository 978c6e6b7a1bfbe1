"""C = A B for any M, N, K, with 64 x 64 x 16 tiles and 4 x 4 elements a thread."""

from warpproof import In, Out, Size, contract, f32

M, N = Size("M", min=1, max=2**14, examples=(5, 70)), Size("N", min=1, max=2**14, examples=(7, 66))
K = Size("K", min=1, max=2**14, examples=(19, 33))


@contract(kernel="sgemm.cu::sgemm", grid=((N + 63) // 64, (M + 63) // 64), block=256)
def sgemm(A: In[f32, M, K], B: In[f32, K, N], C: Out[f32, M, N], M: M, N: N, K: K):
    return {"C": A @ B}
