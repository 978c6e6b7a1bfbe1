// WRONG (equivalence): the last element of each diagonal is left out, but for the main one
extern "C" __global__ void diagonal_sums(const float* __restrict__ A, float* __restrict__ out, int n) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < n - d - (d > 0); ++i) sum += A[(size_t)i * n + i + d];
    out[d] = sum;
}
