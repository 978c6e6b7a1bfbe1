"""Concatenation along columns."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

R, A, B = Size("R", min=1, max=2**16), Size("A", min=1, max=2**12), Size("B", min=1, max=2**12)


@contract(kernel="kernel.cu::concat_columns", grid=(cdiv(R * (A + B), 256),), block=256, where=["R * (A + B) <= 2**30"])
def concat_columns(a: In[f32, R, A], b: In[f32, R, B], y: Out[f32, R, A + B], R: R, A: A, B: B):
    return {"y": np.concatenate([a, b], axis=1)}
