// WRONG (equivalence): the maximum is taken instead of the sum
__device__ __forceinline__ float warpMax(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
  return v;
}
__device__ __forceinline__ float warpSum(float v) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  return v;
}
extern "C" __global__ void __launch_bounds__(128) softmax_warp(const float* x, float* y, int rows, int n) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* xr = x + (size_t)row * n;
  float* yr = y + (size_t)row * n;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32) m = fmaxf(m, xr[i]);
  m = warpMax(m);
  float s = 0.f;
  for (int i = threadIdx.x; i < n; i += 32) s += __expf(xr[i] - m);
  s = warpMax(s);
  float inv = 1.f / s;
  for (int i = threadIdx.x; i < n; i += 32) yr[i] = __expf(xr[i] - m) * inv;
}
