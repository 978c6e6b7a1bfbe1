"""Root-mean-square normalisation of each row, one warp a row."""

import numpy as np

from warpproof import In, Out, Scalar, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**24)


@contract(kernel="rmsnorm.cu::rmsnorm", grid=((rows + 3) // 4,), block=(32, 4), where=["eps > 0"])
def rmsnorm(x: In[f32, rows, n], weight: In[f32, n], y: Out[f32, rows, n], rows: rows, n: n, eps: Scalar[f32]):
    return {"y": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * weight}
