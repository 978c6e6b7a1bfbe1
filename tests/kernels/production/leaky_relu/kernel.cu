// x > 0 ? x : slope * x, grid-stride.
extern "C" __global__ void leaky_relu(const float* x, float* y, float slope, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float v = x[i];
        y[i] = v > 0.0f ? v : slope * v;
    }
}
