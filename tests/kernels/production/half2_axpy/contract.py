"""axpy on packed halves."""

from warpproof import In, InOut, Scalar, Size, cdiv, contract, f16, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::half2_axpy", grid=(cdiv(n, 512),), block=256)
def half2_axpy(x: In[f16, n], y: InOut[f16, n], a: Scalar[f32], n: n):
    return {"y": a * x + y}
