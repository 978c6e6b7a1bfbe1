"""y = alpha * x + y in place; a fixed grid strides over any n."""

from warpproof import In, InOut, Scalar, Size, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="saxpy.cu::saxpy", grid=(120,), block=256)
def saxpy(alpha: Scalar[f32], x: In[f32, n], y: InOut[f32, n], n: n):
    return {"y": alpha * x + y}
