// WRONG (equivalence): the second launch leaves the last partial sum out
// part[b] = sum of x[i] * y[i] over the elements of block b
extern "C" __global__ void partial(const float* x, const float* y, float* part, int n) {
    __shared__ float sums[256];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    sums[t] = i < n ? x[i] * y[i] : 0.0f;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) sums[t] += sums[t + half];
        __syncthreads();
    }
    if (t == 0) part[blockIdx.x] = sums[0];
}

// out[0] = sum of the m partial sums: one warp
extern "C" __global__ void finish(const float* part, float* out, int m) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < m - 1; i += 32) sum += part[i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) *out = sum;
}
