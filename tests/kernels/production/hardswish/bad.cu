// WRONG (equivalence): the upper limit of the clamp is missing
extern "C" __global__ void hardswish(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = x[i];
    y[i] = v * fmaxf(v + 3.0f, 0.0f) * (1.0f / 6.0f);
}
