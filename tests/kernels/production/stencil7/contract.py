"""A 7-point stencil with zero padding."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

D, H, W = Size("D", min=1, max=2**10), Size("H", min=1, max=2**10), Size("W", min=1, max=2**10)


@contract(kernel="kernel.cu::stencil7", grid=(cdiv(W, 32), cdiv(H, 4), D), block=(32, 4))
def stencil7(u: In[f32, D, H, W], v: Out[f32, D, H, W], D: D, H: H, W: W):
    p = np.pad(u, 1)
    c = p[1:-1, 1:-1, 1:-1]
    sides = p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    return {"v": sides + p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] - 6 * c}
