"""Lower triangle."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

rows, cols = Size("rows", min=1, max=2**14), Size("cols", min=1, max=2**14)
k = Size("k", min=-2**14, max=2**14, examples=(0, 1, -2))


@contract(kernel="kernel.cu::tril", grid=(cdiv(rows * cols, 256),), block=256)
def tril(x: In[f32, rows, cols], y: Out[f32, rows, cols], rows: rows, cols: cols, k: k):
    return {"y": np.where(np.arange(cols)[None, :] <= np.arange(rows)[:, None] + k, x, 0)}
