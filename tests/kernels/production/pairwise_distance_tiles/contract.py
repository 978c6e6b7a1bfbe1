"""Pairwise distances by tiles."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

M, N, D = Size("M", min=1, max=2**13), Size("N", min=1, max=2**13), Size("D", min=1, max=2**10)


@contract(kernel="kernel.cu::pd", grid=(cdiv(N, 16), cdiv(M, 16)), block=(16, 16))
def pairwise_distance_tiles(a: In[f32, M, D], b: In[f32, N, D], y: Out[f32, M, N], M: M, N: N, D: D):
    return {"y": np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))}
