"""GELU, tanh form."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::gelu", grid=(432,), block=256)
def gelu(x: In[f32, n], y: Out[f32, n], n: n):
    k, c = float(np.float32(0.7978845608)), float(np.float32(0.044715))  # as the kernel holds them
    return {"y": 0.5 * x * (1 + np.tanh(k * (x + c * x**3)))}
