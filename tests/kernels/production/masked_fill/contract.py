"""Masked fill."""

import numpy as np

from warpproof import In, Out, Scalar, Size, bool_, cdiv, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::masked_fill", grid=(cdiv(n, 256),), block=256)
def masked_fill(x: In[f32, n], mask: In[bool_, n], y: Out[f32, n], value: Scalar[f32], n: n):
    return {"y": np.where(mask, value, x)}
