"""Histogram of 256 bins."""

import numpy as np

from warpproof import In, InOut, Size, cdiv, contract, i32

n = Size("n", min=1, max=2**30, examples=(300, 700))


@contract(kernel="kernel.cu::histogram", grid=(cdiv(n, 256),), block=256, where=["0 <= x[i] < 256"])
def histogram(x: In(range=(0, 256))[i32, n], counts: InOut(range=(0, 2**20))[i32, 256], n: n):
    return {"counts": counts + (x[:, None] == np.arange(256)[None, :]).sum(axis=0)}
