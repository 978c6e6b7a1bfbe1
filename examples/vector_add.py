"""c = a + b, with a partly idle last block."""

from warpproof import In, Out, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="vector_add.cu::vector_add", grid=((n + 255) // 256,), block=256)
def vector_add(a: In[f32, n], b: In[f32, n], c: Out[f32, n], n: n):
    return {"c": a + b}
