"""Layer normalisation of each row, with gain and shift."""

import numpy as np

from warpproof import In, Out, Scalar, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**24)


@contract(kernel="layernorm.cu::layernorm", grid=(rows,), block=128, where=["eps > 0"])
def layernorm(x: In[f32, rows, n], gain: In[f32, n], shift: In[f32, n], y: Out[f32, rows, n], n: n, eps: Scalar[f32]):
    d = x - x.mean(axis=1, keepdims=True)
    variance = (d * d).mean(axis=1, keepdims=True)
    return {"y": d / np.sqrt(variance + eps) * gain + shift}
