// Bilinear upsampling of x[planes][H][W] by two (half-pixel centres, edges clamped).
extern "C" __global__ void upsample_bilinear(const float* __restrict__ x, float* __restrict__ y, int H, int W) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ox >= 2 * W || oy >= 2 * H) return;
    const float* in = x + (size_t)blockIdx.z * H * W;
    const int iy = oy / 2, ix = ox / 2;
    const int ny = oy % 2 ? min(iy + 1, H - 1) : max(iy - 1, 0);
    const int nx = ox % 2 ? min(ix + 1, W - 1) : max(ix - 1, 0);
    const float here = 0.75f * in[iy * W + ix] + 0.25f * in[iy * W + nx];
    const float there = 0.75f * in[ny * W + ix] + 0.25f * in[ny * W + nx];
    y[((size_t)blockIdx.z * 2 * H + oy) * 2 * W + ox] = 0.75f * here + 0.25f * there;
}
