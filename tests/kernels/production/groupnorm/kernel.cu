// Group normalisation of x[N][groups][channels per group][spatial], one block a group of one sample.
__device__ float block_sum(float v) {
    __shared__ float part[8];
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; ++w) v += part[w];
    __syncthreads();
    return v;
}

extern "C" __global__ void groupnorm(const float* x, const float* gamma, const float* beta, float* y, int groups,
                                     int cpg, int spatial, float eps) {
    const int g = blockIdx.x, sample = blockIdx.y;
    const int count = cpg * spatial;
    const size_t base = ((size_t)sample * groups + g) * count;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[base + i];
    const float mean = block_sum(sum) / count;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const float d = x[base + i] - mean;
        squares += d * d;
    }
    const float rstd = rsqrtf(block_sum(squares) / count + eps);
    for (int c = 0; c < cpg; ++c) {
        const float scale = gamma[g * cpg + c] * rstd, shift = beta[g * cpg + c];
        for (int s = threadIdx.x; s < spatial; s += blockDim.x) {
            const size_t at = base + (size_t)c * spatial + s;
            y[at] = (x[at] - mean) * scale + shift;
        }
    }
}
