// Dot products of the rows of two matrices, one warp a row, eight rows a block.
extern "C" __global__ void row_dot(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int rows, int n) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) sum += a[(size_t)row * n + i] * b[(size_t)row * n + i];
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x == 0) out[row] = sum;
}
