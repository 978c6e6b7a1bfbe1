// residual += x; y = residual / rms(residual) * weight, one block a row
extern "C" __global__ void rmsnorm_residual(const float* __restrict__ x, float* __restrict__ residual,
                                            const float* __restrict__ weight, float* __restrict__ y, int n, float eps) {
    __shared__ float warp_sums[8];
    const float* in = x + (size_t)blockIdx.x * n;
    float* res = residual + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const float v = in[i] + res[i];
        res[i] = v;
        squares += v * v;
    }
    for (int offset = 16; offset > 0; offset >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = squares;
    __syncthreads();
    float total = 0.0f;
    for (int w = 0; w < 8; ++w) total += warp_sums[w];
    const float scale = rsqrtf(total / n + eps);
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = res[i] * scale * weight[i];
}
