// Average pooling of x[planes][H][W] with 2 x 2 windows and stride 2; an odd last row or column is dropped.
extern "C" __global__ void avgpool(const float* __restrict__ x, float* __restrict__ y, int H, int W) {
    const int OH = H / 2, OW = W / 2;
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ox >= OW || oy >= OH) return;
    const float* in = x + (size_t)blockIdx.z * H * W;
    float sum = 0.0f;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) sum += in[(2 * oy + i) * W + 2 * ox + j];
    y[(size_t)blockIdx.z * OH * OW + oy * OW + ox] = sum * 0.25f;
}
