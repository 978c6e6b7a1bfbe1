// y = transpose(x) through a 32 x 32 shared tile, padded by one column against bank conflicts
extern "C" __global__ void transpose(const float* x, float* y, int M, int N) {
    __shared__ float tile[32][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (column < N && row + k < M) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(row + k) * N + column];
    __syncthreads();
    const int out_column = blockIdx.y * 32 + threadIdx.x;
    const int out_row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (out_column < M && out_row + k < N) y[(size_t)(out_row + k) * M + out_column] = tile[threadIdx.x][threadIdx.y + k];
}
