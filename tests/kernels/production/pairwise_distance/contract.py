"""Distances of all pairs."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

M, N = Size("M", min=1, max=2**16), Size("N", min=1, max=2**16)
D = Size("D", min=1, max=2**14)


@contract(kernel="kernel.cu::pairwise_distance", grid=(cdiv(N, 16), cdiv(M, 16)), block=(16, 16))
def pairwise_distance(a: In[f32, M, D], b: In[f32, N, D], out: Out[f32, M, N], M: M, N: N, D: D):
    return {"out": np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))}
