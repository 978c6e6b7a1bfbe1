// WRONG (equivalence): the last rows of a tile are read with another swizzle than they were written with
extern "C" __global__ void transpose_xor(const float* __restrict__ x, float* __restrict__ y, int M, int N) {
    __shared__ float tile[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int col = blockIdx.x * 32 + tx, row0 = blockIdx.y * 32;
    for (int k = ty; k < 32; k += 8)
        if (col < N && row0 + k < M) tile[k][tx ^ k] = x[(size_t)(row0 + k) * N + col];
    __syncthreads();
    const int out_col = row0 + tx, out_row0 = blockIdx.x * 32;
    for (int k = ty; k < 32; k += 8)
        if (out_col < M && out_row0 + k < N) y[(size_t)(out_row0 + k) * M + out_col] = tile[tx][k ^ (tx & 15)];
}
