// WRONG (equivalence, races): maxima and sums share one buffer, and a fast warp writes its sum before a slow one has read the maxima
__device__ float block_max(float v, float* part) {
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; ++w) v = fmaxf(v, part[w]);
    return v;
}

__device__ float block_sum(float v, float* part) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < 8; ++w) v += part[w];
    return v;
}

extern "C" __global__ void softmax(const float* x, float* y, int n) {
    __shared__ float part[8];
    const float* in = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float m = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 256) m = fmaxf(m, in[i]);
    m = block_max(m, part);
    float s = 0.0f;
    for (int i = threadIdx.x; i < n; i += 256) s += __expf(in[i] - m);
    s = block_sum(s, part);
    for (int i = threadIdx.x; i < n; i += 256) out[i] = __expf(in[i] - m) / s;
}
