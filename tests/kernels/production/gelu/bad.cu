// WRONG (equivalence): the cubic term lacks a factor
extern "C" __global__ void gelu(const float* __restrict__ x, float* __restrict__ y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float v = x[i];
        const float inner = 0.7978845608f * (v + 0.044715f * v * v);
        y[i] = 0.5f * v * (1.0f + tanhf(inner));
    }
}
