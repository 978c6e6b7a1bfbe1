"""Group normalisation."""

import numpy as np

from warpproof import In, Out, Scalar, Size, contract, f32

N, groups = Size("N", min=1, max=65535), Size("groups", min=1, max=2**10)
cpg, spatial = Size("cpg", min=1, max=2**9), Size("spatial", min=1, max=2**20)


@contract(kernel="kernel.cu::groupnorm", grid=(groups, N), block=256, where=["eps > 0"])
def groupnorm(x: In[f32, N, groups, cpg, spatial], gamma: In[f32, groups, cpg], beta: In[f32, groups, cpg],
              y: Out[f32, N, groups, cpg, spatial], groups: groups, cpg: cpg, spatial: spatial, eps: Scalar[f32]):
    flat = x.reshape(*x.shape[:2], -1)
    mean = flat.mean(axis=2, keepdims=True)[..., None]
    var = flat.var(axis=2, keepdims=True)[..., None]
    return {"y": (x - mean) / np.sqrt(var + eps) * gamma[None, :, :, None] + beta[None, :, :, None]}
