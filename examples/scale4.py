"""y = scale * x, four elements a thread and a scalar tail."""

from warpproof import In, Out, Scalar, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="scale4.cu::scale4", grid=(n // 1024 + 1,), block=256)
def scale4(x: In[f32, n], y: Out[f32, n], scale: Scalar[f32], n: n):
    return {"y": scale * x}
