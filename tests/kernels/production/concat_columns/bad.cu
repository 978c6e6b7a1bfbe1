// WRONG (equivalence): the second matrix is read from a wrong column
extern "C" __global__ void concat_columns(const float* a, const float* b, float* y, int R, int A, int B) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int W = A + B;
  if (i >= R * W) return;
  int r = i / W, c = i % W;
  y[i] = c < A ? a[r * A + c] : b[r * B + (c - B)];
}
