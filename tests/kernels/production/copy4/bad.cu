// WRONG (memory): the number of vectors is rounded up
extern "C" __global__ void copy4(const float* __restrict__ src, float* __restrict__ dst, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int vectors = (n + 3) / 4;
    if (i < vectors)
        reinterpret_cast<float4*>(dst)[i] = reinterpret_cast<const float4*>(src)[i];
    else if (i == vectors)
        for (int j = 4 * vectors; j < n; ++j) dst[j] = src[j];
}
