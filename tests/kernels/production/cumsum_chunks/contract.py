"""Prefix sums of rows, by chunks."""

import numpy as np

from warpproof import In, Out, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**28, examples=(100, 7))


@contract(kernel="kernel.cu::cumsum_chunks", grid=(rows,), block=32)
def cumsum_chunks(x: In[f32, rows, n], y: Out[f32, rows, n], n: n):
    return {"y": np.cumsum(x, axis=1)}
