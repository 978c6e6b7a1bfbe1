// WRONG (memory): A is read beyond its end at ragged edges, and the value then multiplied by 0
extern "C" __global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][16], b[16][16];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * 16 + tx;
    const int row = blockIdx.y * 16 + ty;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 16) {
        a[ty][tx] = A[(size_t)row * K + k0 + tx] * (row < M && k0 + tx < K ? 1.0f : 0.0f);
        b[ty][tx] = k0 + ty < K && column < N ? B[(size_t)(k0 + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += a[ty][k] * b[k][tx];
        __syncthreads();
    }
    if (row < M && column < N) C[(size_t)row * N + column] = sum;
}
