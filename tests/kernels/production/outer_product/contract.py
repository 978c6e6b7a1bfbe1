"""Outer product."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

M, N = Size("M", min=1, max=2**19), Size("N", min=1, max=2**20)


@contract(kernel="kernel.cu::outer_product", grid=(cdiv(N, 32), cdiv(M, 8)), block=(32, 8))
def outer_product(a: In[f32, M], b: In[f32, N], C: Out[f32, M, N], M: M, N: N):
    return {"C": np.outer(a, b)}
