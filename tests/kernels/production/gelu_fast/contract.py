"""GELU, tanh form, vectorised."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

n4 = Size("n4", min=1, max=2**28)


@contract(kernel="kernel.cu::gelu_fast", grid=(cdiv(n4, 256),), block=256)
def gelu_fast(x: In[f32, 4 * n4], y: Out[f32, 4 * n4], n4: n4):
    k, c = float(np.float32(0.7978845608)), float(np.float32(0.044715))  # as the kernel holds them
    return {"y": 0.5 * x * (1 + np.tanh(k * (x + c * x**3)))}
