"""Batch normalisation with given statistics."""

import numpy as np

from warpproof import In, Out, Scalar, Size, cdiv, contract, f32

N, C, S = Size("N", min=1, max=65535), Size("C", min=1, max=65535), Size("S", min=1, max=2**24)


@contract(kernel="kernel.cu::batchnorm_inference", grid=(cdiv(S, 256), C, N), block=256,
          where=["eps > 0", "var[c] >= 0"])
def batchnorm_inference(x: In[f32, N, C, S], mean: In[f32, C], var: In[f32, C], gamma: In[f32, C], beta: In[f32, C],
                        y: Out[f32, N, C, S], C: C, S: S, eps: Scalar[f32]):
    def along(v):
        return v[None, :, None]
    return {"y": (x - along(mean)) / np.sqrt(along(var) + eps) * along(gamma) + along(beta)}
