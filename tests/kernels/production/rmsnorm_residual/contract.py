"""The residual update fused with RMS normalisation."""

import numpy as np

from warpproof import In, InOut, Out, Scalar, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**20)


@contract(kernel="kernel.cu::rmsnorm_residual", grid=(rows,), block=256, where=["eps > 0"])
def rmsnorm_residual(x: In[f32, rows, n], residual: InOut[f32, rows, n], weight: In[f32, n], y: Out[f32, rows, n], n: n,
                     eps: Scalar[f32]):
    r = residual + x
    return {"residual": r, "y": r / np.sqrt((r**2).mean(axis=1, keepdims=True) + eps) * weight}
