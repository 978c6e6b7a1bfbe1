"""A 5-point stencil."""

from warpproof import In, Out, Scalar, Size, cdiv, contract, f32

H, W = Size("H", min=3, max=2**14), Size("W", min=3, max=2**14)


@contract(kernel="kernel.cu::stencil5", grid=(cdiv(W, 32), cdiv(H, 8)), block=(32, 8))
def stencil5(u: In[f32, H, W], v: Out[f32, H, W], c: Scalar[f32], H: H, W: W):
    out = u.copy()
    middle = u[1:-1, 1:-1]
    out[1:-1, 1:-1] = middle + c * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * middle)
    return {"v": out}
