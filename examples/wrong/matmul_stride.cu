// WRONG (equivalence, memory, races): C is stored with row stride M, right for square matrices only
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * M + column] = sum;
}
