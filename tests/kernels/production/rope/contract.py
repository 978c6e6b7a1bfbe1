"""Rotary position embedding, in place."""

import numpy as np

from warpproof import In, InOut, Size, contract, f32

T, H, half = Size("T", min=1, max=2**15), Size("H", min=1, max=1024), Size("half", min=1, max=512)


@contract(kernel="kernel.cu::rope", grid=(T, H), block=64)
def rope(q: InOut[f32, T, H, 2 * half], cosine: In[f32, T, half], sine: In[f32, T, half], H: H, half: half):
    a, b = q[:, :, :half], q[:, :, half:]
    c, s = cosine[:, None, :], sine[:, None, :]
    return {"q": np.concatenate([a * c - b * s, b * c + a * s], axis=2)}
