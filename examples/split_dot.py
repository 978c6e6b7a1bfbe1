"""A dot product in two launches: one partial sum a block, then the sum of these."""

import numpy as np

from warpproof import In, Out, Size, call, cdiv, contract, f32

n = Size("n", min=1, max=2**20, examples=(5, 700))
blocks = cdiv(n, 256)


@contract(kernel="split_dot.cu", launches=[
    call("partial", "x", "y", "part", "n", grid=(blocks,), block=256),
    call("finish", "part", "out", blocks, grid=(1,), block=32),
])
def split_dot(x: In[f32, n], y: In[f32, n], part: Out(scratch=True)[f32, blocks], out: Out[f32, 1], n: n):
    return {"out": np.reshape(np.sum(x * y), (1,))}
