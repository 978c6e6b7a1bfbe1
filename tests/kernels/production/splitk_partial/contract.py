"""Partial products of a split-K matrix product."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

M, N = Size("M", min=1, max=2**13, examples=(5, 19)), Size("N", min=1, max=2**13, examples=(7, 33))
splits, slice = Size("splits", min=1, max=64, examples=(2, 3)), Size("slice", min=1, max=2**10, examples=(9, 20))
K = Size("K", max=2**16, examples=(18, 60))


@contract(kernel="kernel.cu::splitk_partial", grid=(cdiv(N, 16), cdiv(M, 16), splits), block=(16, 16),
          where=[splits * slice == K])
def splitk_partial(A: In[f32, M, K], B: In[f32, K, N], partial: Out[f32, splits, M, N], M: M, N: N, K: K, slice: slice):
    a, b = A.reshape(M, -1, slice), B.reshape(-1, slice, N)
    return {"partial": np.einsum("msk,skn->smn", a, b)}
