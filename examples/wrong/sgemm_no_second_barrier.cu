// WRONG (equivalence, races): no barrier between the use of a tile and the next fill
extern "C" __global__ void __launch_bounds__(256)
sgemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[16][64], b[16][64];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int p = 0; p < 4; ++p) {
            const int ak = t % 16, am = t / 16 + 16 * p;
            const int bk = t / 64 + 4 * p, bn = t % 64;
            a[ak][am] = row0 + am < M && k0 + ak < K ? A[(size_t)(row0 + am) * K + k0 + ak] : 0.0f;
            b[bk][bn] = k0 + bk < K && column0 + bn < N ? B[(size_t)(k0 + bk) * N + column0 + bn] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += a[k][4 * ty + i] * b[k][4 * tx + j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + 4 * ty + i, column = column0 + 4 * tx + j;
            if (row < M && column < N) C[(size_t)row * N + column] = sum[i][j];
        }
}
