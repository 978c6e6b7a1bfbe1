"""Softmax of rows, a warp a row."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**20)


@contract(kernel="kernel.cu::softmax_warp", grid=(cdiv(rows, 4),), block=(32, 4))
def softmax_warp_rows(x: In[f32, rows, n], y: Out[f32, rows, n], rows: rows, n: n):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}
