// Euclidean distances of all pairs of rows, by tiles in shared memory.
extern "C" __global__ void pd(const float* a, const float* b, float* y, int M, int N, int D) {
  __shared__ float sa[16][17], sb[16][17];
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  int jb = blockIdx.x * 16 + threadIdx.y;
  float acc = 0.f;
  for (int k0 = 0; k0 < D; k0 += 16) {
    int k = k0 + threadIdx.x;
    sa[threadIdx.y][threadIdx.x] = (i < M && k < D) ? a[i * D + k] : 0.f;
    sb[threadIdx.y][threadIdx.x] = (jb < N && k < D) ? b[jb * D + k] : 0.f;
    __syncthreads();
    for (int kk = 0; kk < 16; kk++) { float d = sa[threadIdx.y][kk] - sb[threadIdx.x][kk]; acc += d * d; }
    __syncthreads();
  }
  if (i < M && j < N) y[i * N + j] = sqrtf(acc);
}
