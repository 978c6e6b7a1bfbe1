"""Gradient of relu."""

from warpproof import In, Out, Size, cdiv, contract, f32

n = Size("n", min=1, max=2**30)


@contract(kernel="kernel.cu::relu_backward", grid=(cdiv(n, 1024),), block=256)
def relu_backward(x: In[f32, n], dy: In[f32, n], dx: Out[f32, n], n: n):
    return {"dx": dy * (x > 0)}
