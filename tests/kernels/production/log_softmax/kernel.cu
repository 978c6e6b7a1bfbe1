// x - max - log(sum exp(x - max)) of each row, one warp a row.
extern "C" __global__ void log_softmax(const float* __restrict__ x, float* __restrict__ y, int n) {
    const float* in = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, in[i]);
    for (int mask = 16; mask > 0; mask >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) sum += __expf(in[i] - top);
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    const float shift = top + __logf(sum);
    for (int i = threadIdx.x; i < n; i += 32) out[i] = in[i] - shift;
}
