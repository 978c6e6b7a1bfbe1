// WRONG (equivalence, memory): the rows of C are M apart
extern "C" __global__ void outer_product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ C,
                                         int M, int N) {
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < M && j < N) C[(size_t)i * M + j] = a[i] * b[j];
}
