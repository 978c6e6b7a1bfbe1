// First kernel of a split-K product: partial[s] = A[:, slice s] B[slice s, :].
extern "C" __global__ void splitk_partial(const float* __restrict__ A, const float* __restrict__ B,
                                          float* __restrict__ partial, int M, int N, int K, int slice) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || col >= N) return;
    const int begin = blockIdx.z * slice;
    float sum = 0.0f;
    for (int k = begin; k < begin + slice; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + col];
    partial[((size_t)blockIdx.z * M + row) * N + col] = sum;
}
