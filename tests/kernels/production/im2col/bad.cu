// WRONG (equivalence): the rows of a patch are stepped with the patch width instead of the image width
extern "C" __global__ void im2col(const float* __restrict__ x, float* __restrict__ col, int C, int H, int W, int KH,
                                  int KW) {
    const int OH = H - KH + 1, OW = W - KW + 1;
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= C * OH * OW) return;
    const int ox = at % OW, oy = at / OW % OH, c = at / (OW * OH);
    for (int ky = 0; ky < KH; ++ky)
        for (int kx = 0; kx < KW; ++kx)
            col[(((size_t)c * KH + ky) * KW + kx) * (OH * OW) + oy * OW + ox] = x[(c * H + oy) * W + ky * OW + ox + kx];
}
