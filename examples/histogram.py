"""How often each bin occurs, by atomic additions; the range says that every index is a bin."""

import numpy as np

from warpproof import In, InOut, Size, cdiv, contract, i32

n, bins = Size("n", min=1, max=2**30, examples=(5, 700)), Size("bins", min=1, max=2**20, examples=(3, 16))


@contract(kernel="histogram.cu::histogram", grid=(cdiv(n, 256),), block=256)
def histogram(x: In(range=(0, bins))[i32, n], counts: InOut(init="zero")[i32, bins], n: n, bins: bins):
    return {"counts": np.bincount(x, minlength=bins)}
