"""C = A B for any M, N, K, one element a thread."""

from warpproof import In, Out, Size, contract, f32

M, N = Size("M", min=1, max=2**14, examples=(5, 70)), Size("N", min=1, max=2**14, examples=(7, 66))
K = Size("K", min=1, max=2**14, examples=(19, 33))


@contract(kernel="matmul.cu::matmul", grid=((N + 15) // 16, (M + 15) // 16), block=(16, 16))
def matmul(A: In[f32, M, K], B: In[f32, K, N], C: Out[f32, M, N], M: M, N: N, K: K):
    return {"C": A @ B}
