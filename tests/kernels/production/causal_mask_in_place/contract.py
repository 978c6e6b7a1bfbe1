"""Causal mask with scale, in place."""

import numpy as np

from warpproof import InOut, Scalar, Size, cdiv, contract, f32

BH, S = Size("BH", min=1, max=65535), Size("S", min=1, max=2**13)


@contract(kernel="kernel.cu::causal_mask", grid=(cdiv(S, 32), cdiv(S, 8), BH), block=(32, 8))
def causal_mask_in_place(x: InOut[f32, BH, S, S], scale: Scalar[f32], S: S):
    i = np.arange(x.shape[1])
    return {"x": np.where(i[None, None, :] > i[None, :, None], -10000.0, x * scale)}
