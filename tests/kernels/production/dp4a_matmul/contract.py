"""Int8 matrix product."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, i8, i32

M, N = Size("M", min=1, max=2**14, examples=(5, 19)), Size("N", min=1, max=2**14, examples=(7, 33))
K = Size("K", min=4, max=2**14, multiple_of=4, examples=(8, 20))


@contract(kernel="kernel.cu::dp4a_matmul", grid=(cdiv(N, 16), cdiv(M, 16)), block=(16, 16))
def dp4a_matmul(A: In[i8, M, K], B: In[i8, N, K], C: Out[i32, M, N], M: M, N: N, K: K):
    return {"C": A.astype(np.int32) @ B.astype(np.int32).T}
