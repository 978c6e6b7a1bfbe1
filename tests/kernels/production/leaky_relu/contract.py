"""Leaky relu with any slope."""

import numpy as np

from warpproof import In, Out, Scalar, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::leaky_relu", grid=(432,), block=256)
def leaky_relu(x: In[f32, n], y: Out[f32, n], slope: Scalar[f32], n: n):
    return {"y": np.where(x > 0, x, slope * x)}
