// out[d] = sum of A[i][i + d], the d-th diagonal of a square matrix, a thread a diagonal.
extern "C" __global__ void diagonal_sums(const float* __restrict__ A, float* __restrict__ out, int n) {
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < n - d; ++i) sum += A[(size_t)i * n + i + d];
    out[d] = sum;
}
