"""GEGLU, sigmoid form, with 64-bit indices."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

R, D = Size("R", min=1, max=2**18), Size("D", min=1, max=2**14)


@contract(kernel="kernel.cu::glu", grid=(R,), block=256)
def geglu_long_index(out: Out[f32, R, D], x: In[f32, R, 2 * D], D: D):
    a, b = x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]
    return {"out": a / (1 + np.exp(-1.702 * a)) * b}
