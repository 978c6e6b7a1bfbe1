"""A strided batched matrix product that updates C."""

import numpy as np

from warpproof import In, InOut, Scalar, Size, cdiv, contract, f32

batch = Size("batch", min=1, max=65535, examples=(2, 3))
M, N = Size("M", min=1, max=2**12, examples=(5, 19)), Size("N", min=1, max=2**12, examples=(7, 33))
K = Size("K", min=1, max=2**12, examples=(9, 20))
strideA, strideB = Size("strideA", max=2**28, examples=(45, 400)), Size("strideB", max=2**28, examples=(70, 660))
strideC = Size("strideC", max=2**28, examples=(35, 700))


@contract(kernel="kernel.cu::batched_matmul", grid=(cdiv(N, 16), cdiv(M, 16), batch), block=(16, 16),
          where=[strideA >= M * K, strideB >= K * N, strideC >= M * N])
def batched_matmul(A: In(strides=(strideA, K, 1))[f32, batch, M, K], B: In(strides=(strideB, N, 1))[f32, batch, K, N],
                   C: InOut(strides=(strideC, N, 1))[f32, batch, M, N], M: M, N: N, K: K, strideA: strideA,
                   strideB: strideB, strideC: strideC, alpha: Scalar[f32], beta: Scalar[f32]):
    return {"C": alpha * np.matmul(A, B) + beta * C}
