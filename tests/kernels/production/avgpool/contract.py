"""Average pooling."""

from warpproof import In, Out, Size, cdiv, contract, f32

planes, H, W = Size("planes", min=1, max=65535), Size("H", min=2, max=2**12), Size("W", min=2, max=2**12)


@contract(kernel="kernel.cu::avgpool", grid=(cdiv(W // 2, 32), cdiv(H // 2, 8), planes), block=(32, 8))
def avgpool(x: In[f32, planes, H, W], y: Out[f32, planes, H // 2, W // 2], H: H, W: W):
    even_h, even_w = H // 2 * 2, W // 2 * 2
    a = x[:, 0:even_h:2, 0:even_w:2] + x[:, 1:even_h:2, 0:even_w:2]
    b = x[:, 0:even_h:2, 1:even_w:2] + x[:, 1:even_h:2, 1:even_w:2]
    return {"y": (a + b) / 4}
