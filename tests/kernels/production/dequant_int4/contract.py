"""Int4 weights to f32."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32, u32

words = Size("words", min=1, max=2**27)


@contract(kernel="kernel.cu::dequant_int4", grid=(cdiv(words, 256),), block=256)
def dequant_int4(packed: In[u32, words], scales: In[f32, cdiv(words, 16)], out: Out[f32, words, 8], words: words):
    nibbles = (packed[:, None] >> (4 * np.arange(8))) & 15
    return {"out": (nibbles - 8.0) * scales[np.arange(words) // 16][:, None]}
