"""Dot products of rows."""

from warpproof import In, Out, Size, cdiv, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**20)


@contract(kernel="kernel.cu::row_dot", grid=(cdiv(rows, 8),), block=(32, 8))
def row_dot(a: In[f32, rows, n], b: In[f32, rows, n], out: Out[f32, rows], rows: rows, n: n):
    return {"out": (a * b).sum(axis=1)}
