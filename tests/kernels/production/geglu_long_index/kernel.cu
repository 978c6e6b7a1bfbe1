// GEGLU with the sigmoid form of GELU, indices of 64 bits.
__device__ float act(float x) { return x / (1.0f + __expf(-1.702f * x)); }
extern "C" __global__ void glu(float* out, const float* x, int D) {
  const long long token = blockIdx.x;
  for (long long i = threadIdx.x; i < D; i += blockDim.x) {
    const float a = __ldg(&x[token * 2 * D + i]);
    const float b = __ldg(&x[token * 2 * D + D + i]);
    out[token * D + i] = act(a) * b;
  }
}
