"""A permutation applied by scattering."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32, i32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::scatter_permutation", grid=(cdiv(n, 256),), block=256,
          where=["0 <= perm[i] < n", "perm[i] != perm[j] or i == j"])
def scatter_permutation(x: In[f32, n], perm: In[i32, n], out: Out[f32, n], n: n):
    y = np.zeros(n)
    y[perm] = x
    return {"out": y}
