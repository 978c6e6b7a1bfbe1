// WRONG (equivalence): the sum of absolute differences instead of their squares
extern "C" __global__ void pairwise_distance(const float* __restrict__ a, const float* __restrict__ b,
                                             float* __restrict__ out, int M, int N, int D) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int d = 0; d < D; ++d) {
        const float diff = a[(size_t)i * D + d] - b[(size_t)j * D + d];
        sum += fabsf(diff);
    }
    out[(size_t)i * N + j] = sum;
}
