"""Image to columns."""

import numpy as np

from warpproof import In, Out, Size, cdiv, contract, f32

C, H, W = Size("C", min=1, max=2**8), Size("H", min=1, max=2**9), Size("W", min=1, max=2**9)
KH, KW = Size("KH", min=1, max=16, examples=(2, 3)), Size("KW", min=1, max=16, examples=(3, 1))


@contract(kernel="kernel.cu::im2col", grid=(cdiv(C * (H - KH + 1) * (W - KW + 1), 256),), block=256,
          where=[KH <= H, KW <= W])
def im2col(x: In[f32, C, H, W], col: Out[f32, C, KH, KW, H - KH + 1, W - KW + 1], C: C, H: H, W: W, KH: KH, KW: KW):
    OH, OW = H - KH + 1, W - KW + 1
    rows = np.arange(KH)[:, None, None, None] + np.arange(OH)[None, None, :, None]
    columns = np.arange(KW)[None, :, None, None] + np.arange(OW)[None, None, None, :]
    return {"col": x[:, rows, columns]}
