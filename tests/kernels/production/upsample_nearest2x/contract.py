"""Nearest-neighbour upsampling by two."""

from warpproof import In, Out, Size, cdiv, contract, f32

planes, H, W = Size("planes", min=1, max=65535), Size("H", min=1, max=2**12), Size("W", min=1, max=2**12)


@contract(kernel="kernel.cu::upsample_nearest2x", grid=(cdiv(2 * W, 32), cdiv(2 * H, 8), planes), block=(32, 8))
def upsample_nearest2x(x: In[f32, planes, H, W], y: Out[f32, planes, 2 * H, 2 * W], H: H, W: W):
    return {"y": x.repeat(2, axis=1).repeat(2, axis=2)}
