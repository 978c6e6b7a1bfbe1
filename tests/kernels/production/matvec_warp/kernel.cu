// y = A x, one warp a row, four rows a block.
extern "C" __global__ void matvec_warp(const float* __restrict__ A, const float* __restrict__ x, float* __restrict__ y,
                                       int M, int N) {
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= M) return;
    float sum = 0.0f;
    for (int j = lane; j < N; j += 32) sum += A[(size_t)row * N + j] * x[j];
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) y[row] = sum;
}
