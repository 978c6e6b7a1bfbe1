"""Sum over axis 0."""

from warpproof import In, Out, Size, cdiv, contract, f32

rows, cols = Size("rows", min=1, max=2**20), Size("cols", min=1, max=2**20)


@contract(kernel="kernel.cu::column_sum", grid=(cdiv(cols, 32),), block=(32, 8))
def column_sum(x: In[f32, rows, cols], out: Out[f32, cols], rows: rows, cols: cols):
    return {"out": x.sum(axis=0)}
