// WRONG (equivalence): the elements of the last partial stride are left out
extern "C" __global__ void silu(const float* __restrict__ x, float* __restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4 * 4; i += gridDim.x * blockDim.x)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
