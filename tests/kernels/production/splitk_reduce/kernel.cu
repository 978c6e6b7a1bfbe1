// Second kernel of a split-K product: C = sum of the partial products.
extern "C" __global__ void splitk_reduce(const float* __restrict__ partial, float* __restrict__ C, int splits, int size) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    float sum = 0.0f;
    for (int s = 0; s < splits; ++s) sum += partial[(size_t)s * size + i];
    C[i] = sum;
}
