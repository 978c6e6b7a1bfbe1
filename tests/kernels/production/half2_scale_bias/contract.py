"""Scale, bias and relu on packed halves."""

import numpy as np

from warpproof import In, Out, Size, contract, f16

rows, n8 = Size("rows", min=1, max=2**20), Size("n8", min=1, max=2**16)


@contract(kernel="kernel.cu::half2_scale_bias", grid=(rows,), block=128)
def half2_scale_bias(x: In[f16, rows, 8 * n8], scale: In[f16, 8 * n8], bias: In[f16, 8 * n8],
                     y: Out[f16, rows, 8 * n8], n8: n8):
    return {"y": np.maximum(x * scale + bias, 0)}
