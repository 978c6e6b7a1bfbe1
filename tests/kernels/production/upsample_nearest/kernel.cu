// Nearest-neighbour upsampling of x[planes][H][W] by an integer factor in both directions.
extern "C" __global__ void upsample_nearest(const float* __restrict__ x, float* __restrict__ y, int H, int W, int scale) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = blockIdx.z, OW = W * scale, OH = H * scale;
    if (ox >= OW || oy >= OH) return;
    y[((size_t)plane * OH + oy) * OW + ox] = x[((size_t)plane * H + oy / scale) * W + ox / scale];
}
