// Eight 4-bit weights in each 32-bit word, zero point 8, one scale for each group of 128 weights.
extern "C" __global__ void dequant_int4(const unsigned* __restrict__ packed, const float* __restrict__ scales,
                                        float* __restrict__ out, int words) {
    const int w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= words) return;
    const unsigned bits = packed[w];
    const float scale = scales[w / 16];
#pragma unroll
    for (int k = 0; k < 8; ++k) out[w * 8 + k] = (float)((int)((bits >> (4 * k)) & 0xf) - 8) * scale;
}
