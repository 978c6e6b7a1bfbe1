// WRONG (equivalence): the moved diagonal itself is cleared
extern "C" __global__ void tril(const float* __restrict__ x, float* __restrict__ y, int rows, int cols, int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    const int row = i / cols, col = i % cols;
    y[i] = col < row + k ? x[i] : 0.0f;
}
