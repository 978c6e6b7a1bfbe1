"""Index of the largest element."""

from warpproof import In, Out, Size, cdiv, contract, f32, i32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**20)


@contract(kernel="kernel.cu::argmax", grid=(cdiv(rows, 4),), block=(32, 4))
def argmax(x: In[f32, rows, n], out: Out[i32, rows], rows: rows, n: n):
    return {"out": x.argmax(axis=1)}
