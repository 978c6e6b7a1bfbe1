"""The largest element of each row, by warp shuffles."""

from warpproof import In, Out, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**30)


@contract(kernel="row_max.cu::row_max", grid=(rows,), block=128)
def row_max(x: In[f32, rows, n], y: Out[f32, rows], n: n):
    return {"y": x.max(axis=1)}
