"""Top-1 gating of a mixture of experts."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32, i32

tokens, experts = Size("tokens", min=1, max=2**20), Size("experts", min=1, max=2**10)


@contract(kernel="kernel.cu::top1_gating", grid=(cdiv(tokens, 128),), block=128)
def top1_gating(logits: In[f32, tokens, experts], weight: Out[f32, tokens], expert: Out[i32, tokens], tokens: tokens,
                experts: experts):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return {"weight": 1 / e.sum(axis=1), "expert": logits.argmax(axis=1)}
