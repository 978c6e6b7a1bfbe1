// WRONG (equivalence): B's batches are stepped with the stride of A
#define TILE 16
extern "C" __global__ void batched_matmul(const float* __restrict__ A, const float* __restrict__ B, float* C, int M,
                                          int N, int K, int strideA, int strideB, int strideC, float alpha, float beta) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    A += (size_t)blockIdx.z * strideA;
    B += (size_t)blockIdx.z * strideA;
    C += (size_t)blockIdx.z * strideC;
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        a[ty][tx] = row < M && k0 + tx < K ? A[row * K + k0 + tx] : 0.0f;
        b[ty][tx] = k0 + ty < K && col < N ? B[(k0 + ty) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = alpha * sum + beta * C[row * N + col];
}
