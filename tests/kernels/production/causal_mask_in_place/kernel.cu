// Scores of attention scaled and masked in place.
extern "C" __global__ void causal_mask(float* x, float scale, int S) {
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
  if (r < S && c < S) {
    size_t i = ((size_t)blockIdx.z * S + r) * S + c;
    x[i] = c > r ? -10000.0f : x[i] * scale;
  }
}
