"""Rows gathered by index."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32, i32

rows, pool, n = Size("rows", min=1, max=2**20), Size("pool", min=1, max=2**20), Size("n", min=1, max=2**16)


@contract(kernel="kernel.cu::gather_rows", grid=(cdiv(rows, 4),), block=(32, 4), where=["0 <= index[i] < pool"])
def gather_rows(x: In[f32, pool, n], index: In[i32, rows], out: Out[f32, rows, n], rows: rows, n: n):
    return {"out": np.take(x, index, axis=0)}
