"""A strided batched matrix product that updates C."""

import numpy as np

from warpproof import In, InOut, Scalar, Size, cdiv, contract, f32

batch = Size("batch", min=1, max=65535, examples=(2, 3))
M, N = Size("M", min=1, max=2**12, examples=(5, 19)), Size("N", min=1, max=2**12, examples=(7, 33))
K = Size("K", min=1, max=2**12, examples=(9, 20))
stride_a, stride_b = Size("stride_a", max=2**28, examples=(45, 400)), Size("stride_b", max=2**28, examples=(70, 660))
stride_c = Size("stride_c", max=2**28, examples=(35, 700))


@contract(kernel="kernel.cu::batched_matmul", grid=(cdiv(N, 16), cdiv(M, 16), batch), block=(16, 16),
          where=[stride_a >= M * K, stride_b >= K * N, stride_c >= M * N])
def batched_matmul(A: In(strides=(stride_a, K, 1))[f32, batch, M, K], B: In(strides=(stride_b, N, 1))[f32, batch, K, N],
                   C: InOut(strides=(stride_c, N, 1))[f32, batch, M, N], M: M, N: N, K: K, stride_a: stride_a,
                   stride_b: stride_b, stride_c: stride_c, alpha: Scalar[f32], beta: Scalar[f32]):
    return {"C": alpha * np.matmul(A, B) + beta * C}
