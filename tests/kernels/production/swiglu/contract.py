"""SwiGLU, a grid-stride loop over all elements."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::swiglu", grid=(432,), block=256)
def swiglu(gate: In[f32, n], up: In[f32, n], out: Out[f32, n], n: n):
    return {"out": gate * (1 / (1 + np.exp(-gate))) * up}
