// WRONG (equivalence): rounds to the next source column instead of down
extern "C" __global__ void upsample_nearest(const float* __restrict__ x, float* __restrict__ y, int H, int W, int scale) {
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = blockIdx.z, OW = W * scale, OH = H * scale;
    if (ox >= OW || oy >= OH) return;
    const int ix = min((ox + 1) / scale, W - 1);
    y[((size_t)plane * OH + oy) * OW + ox] = x[((size_t)plane * H + oy / scale) * W + ix];
}
