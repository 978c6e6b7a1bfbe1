"""The sum of each row, one block a row, by a tree over shared memory."""

from warpproof import In, Out, Size, contract, f32

rows, n = Size("rows", min=1, max=2**20), Size("n", min=1, max=2**30)


@contract(kernel="block_sum.cu::block_sum", grid=(rows,), block=256)
def block_sum(x: In[f32, rows, n], y: Out[f32, rows], n: n):
    return {"y": x.sum(axis=1)}
