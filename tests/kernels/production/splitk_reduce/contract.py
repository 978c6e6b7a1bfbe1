"""Sum of the partial products of a split-K matrix product."""

from warpproof import In, Out, Size, cdiv, contract, f32

splits, size = Size("splits", min=1, max=64), Size("size", min=1, max=2**28)


@contract(kernel="kernel.cu::splitk_reduce", grid=(cdiv(size, 256),), block=256)
def splitk_reduce(partial: In[f32, splits, size], C: Out[f32, size], splits: splits, size: size):
    return {"C": partial.sum(axis=0)}
