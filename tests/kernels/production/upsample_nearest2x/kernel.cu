// Nearest-neighbour upsampling of x[planes][H][W] by two in both directions.
extern "C" __global__ void upsample_nearest2x(const float* __restrict__ x, float* __restrict__ y, int H, int W) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = blockIdx.z;
    if (ox >= 2 * W || oy >= 2 * H) return;
    y[((size_t)plane * 2 * H + oy) * 2 * W + ox] = x[((size_t)plane * H + (oy >> 1)) * W + (ox >> 1)];
}
