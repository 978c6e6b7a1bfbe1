// Sum over the rows: 32 columns a block, 8 rows at a time.
extern "C" __global__ void column_sum(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
    __shared__ float part[8][33];
    const int col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (col < cols)
        for (int r = threadIdx.y; r < rows; r += 8) sum += x[(size_t)r * cols + col];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && col < cols) {
        for (int k = 1; k < 8; ++k) sum += part[k][threadIdx.x];
        out[col] = sum;
    }
}
