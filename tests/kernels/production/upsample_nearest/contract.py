"""Nearest-neighbour upsampling."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

planes = Size("planes", min=1, max=65535)
H, W = Size("H", min=1, max=2**12, examples=(3, 5)), Size("W", min=1, max=2**12, examples=(4, 7))
scale = Size("scale", min=1, max=16, examples=(2, 3))


@contract(kernel="kernel.cu::upsample_nearest", grid=(cdiv(W * scale, 32), cdiv(H * scale, 8), planes), block=(32, 8))
def upsample_nearest(x: In[f32, planes, H, W], y: Out[f32, planes, H * scale, W * scale], H: H, W: W, scale: scale):
    return {"y": np.repeat(np.repeat(x, scale, axis=1), scale, axis=2)}
