// WRONG (equivalence): the row stride of the input is twice the output's, which fails for odd widths
extern "C" __global__ void avgpool(const float* __restrict__ x, float* __restrict__ y, int H, int W) {
    const int OH = H / 2, OW = W / 2;
    const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ox >= OW || oy >= OH) return;
    const float* in = x + (size_t)blockIdx.z * H * W;
    float sum = 0.0f;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) sum += in[(2 * oy + i) * (2 * OW) + 2 * ox + j];
    y[(size_t)blockIdx.z * OH * OW + oy * OW + ox] = sum * 0.25f;
}
