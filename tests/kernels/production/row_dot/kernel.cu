// Dot products of the rows of two matrices, float4 loads, one warp a row.
extern "C" __global__ void row_dot(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
                                   int rows, int n) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float4* pa = reinterpret_cast<const float4*>(a + (size_t)row * n);
    const float4* pb = reinterpret_cast<const float4*>(b + (size_t)row * n);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n / 4; i += 32) {
        const float4 u = pa[i], v = pb[i];
        sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
    }
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x == 0) out[row] = sum;
}
