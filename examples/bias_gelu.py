"""y = gelu(x + bias) in its tanh form."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

rows, n = Size("rows", min=1, max=65535), Size("n", min=1, max=2**20)


@contract(kernel="bias_gelu.cu::bias_gelu", grid=((n + 255) // 256, rows), block=256)
def bias_gelu(x: In[f32, rows, n], bias: In[f32, n], y: Out[f32, rows, n], rows: rows, n: n):
    v = x + bias
    k, c = float(np.float32(0.7978845608)), float(np.float32(0.044715))  # as the kernel holds them
    return {"y": 0.5 * v * (1 + np.tanh(k * (v + c * v**3)))}
