// Depthwise 3 x 3 convolution with padding 1, NCHW.
extern "C" __global__ void depthwise_conv(const float* __restrict__ x, const float* __restrict__ w,
                                          const float* __restrict__ bias, float* __restrict__ y, int C, int H, int W) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    const int n = blockIdx.z / C, c = blockIdx.z % C;
    if (ox >= W || oy >= H) return;
    const float* in = x + ((size_t)n * C + c) * H * W;
    float sum = bias[c];
#pragma unroll
    for (int ky = 0; ky < 3; ++ky)
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
            const int iy = oy + ky - 1, ix = ox + kx - 1;
            if (iy >= 0 && iy < H && ix >= 0 && ix < W) sum += in[iy * W + ix] * w[c * 9 + ky * 3 + kx];
        }
    y[((size_t)n * C + c) * H * W + oy * W + ox] = sum;
}
