// WRONG (races): the wait admits the stage that is about to be read
__device__ __forceinline__ void copy16(void* shared, const void* global) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global));
}

extern "C" __global__ void __launch_bounds__(256)
sgemm_cp_async(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N, int K) {
    __shared__ __align__(16) float a[2][64][16], b[2][16][64];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const float* a_from = A + (size_t)(blockIdx.y * 64 + t / 4) * K + t % 4 * 4;
    const float* b_from = B + (size_t)(t / 16) * N + blockIdx.x * 64 + t % 16 * 4;
    float sum[4][4] = {};
    copy16(&a[0][t / 4][t % 4 * 4], a_from);
    copy16(&b[0][t / 16][t % 16 * 4], b_from);
    asm volatile("cp.async.commit_group;\n");
    const int tiles = K / 16;
    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile & 1;
        if (tile + 1 < tiles) {
            copy16(&a[stage ^ 1][t / 4][t % 4 * 4], a_from + (tile + 1) * 16);
            copy16(&b[stage ^ 1][t / 16][t % 16 * 4], b_from + (size_t)(tile + 1) * 16 * N);
            asm volatile("cp.async.commit_group;\n");
        }
        asm volatile("cp.async.wait_group 1;\n");
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float x[4], y[4];
            for (int i = 0; i < 4; ++i) x[i] = a[stage][ty * 4 + i][k];
            for (int j = 0; j < 4; ++j) y[j] = b[stage][k][tx * 4 + j];
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            C[(size_t)(blockIdx.y * 64 + ty * 4 + i) * N + blockIdx.x * 64 + tx * 4 + j] = sum[i][j];
}
