// WRONG (equivalence): the maximum is the leaky relu only for slopes below one
extern "C" __global__ void leaky_relu(const float* x, float* y, float slope, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float v = x[i];
        y[i] = fmaxf(v, slope * v);
    }
}
