"""SiLU."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::silu", grid=(432,), block=256)
def silu(x: In[f32, n], y: Out[f32, n], n: n):
    return {"y": x / (1 + np.exp(-x))}
