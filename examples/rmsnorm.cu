// y = x / sqrt(mean(x * x) + eps) * weight for each row: one warp a row, four rows a block
extern "C" __global__ void rmsnorm(const float* x, const float* weight, float* y, int rows, int n, float eps) {
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + (size_t)row * n;
    float* out = y + (size_t)row * n;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) squares += in[i] * in[i];
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, d);
    const float scale = rsqrtf(squares / n + eps);
    for (int i = threadIdx.x; i < n; i += 32) out[i] = in[i] * scale * weight[i];
}
