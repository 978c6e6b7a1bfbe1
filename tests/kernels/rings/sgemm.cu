// C = A B with TILE x TILE x DEPTH tiles in STAGES buffers of shared memory, filled by cp.async; 4 x 4 elements a thread
#define THREADS ((TILE / 4) * (TILE / 4))
__device__ void copy(float* to, const float* from, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
extern "C" __global__ void __launch_bounds__(THREADS)
sgemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[STAGES][DEPTH][TILE], b[STAGES][DEPTH][TILE];
    const int t = threadIdx.x, tx = t % (TILE / 4), ty = t / (TILE / 4);
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
    const int tiles = (K + DEPTH - 1) / DEPTH;
    auto fetch = [&](int stage, int tile) {
        for (int p = t; p < DEPTH * TILE; p += THREADS) {
            const int am = p / DEPTH, ak = p % DEPTH, bk = p / TILE, bn = p % TILE, k0 = tile * DEPTH;
            const bool ia = row0 + am < M && k0 + ak < K, ib = column0 + bn < N && k0 + bk < K;
            copy(&a[stage][ak][am], ia ? A + (size_t)(row0 + am) * K + k0 + ak : A, ia);
            copy(&b[stage][bk][bn], ib ? B + (size_t)(k0 + bk) * N + column0 + bn : B, ib);
        }
    };
    float sum[4][4] = {};
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < tiles) fetch(s, s);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int tile = 0; tile < tiles; ++tile) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        const int next = tile + STAGES - 1;
        if (next < tiles) fetch(next % STAGES, next);
        asm volatile("cp.async.commit_group;" ::: "memory");
        const int now = tile % STAGES;
        for (int k = 0; k < DEPTH; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += a[now][k][4 * ty + i] * b[now][k][4 * tx + j];
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + 4 * ty + i, column = column0 + 4 * tx + j;
            if (row < M && column < N) C[(size_t)row * N + column] = sum[i][j];
        }
}
