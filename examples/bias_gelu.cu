// y = gelu(x + bias) in its tanh form; tanh(u) = 1 - 2 / (exp(2u) + 1)
extern "C" __global__ void bias_gelu(const float* x, const float* bias, float* y, int rows, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= n) return;
    const size_t at = (size_t)row * n + column;
    const float v = x[at] + bias[column];
    const float u = 0.7978845608f * (v + 0.044715f * v * v * v);
    const float tanh_u = 1.0f - 2.0f / (__expf(2.0f * u) + 1.0f);
    y[at] = 0.5f * v * (1.0f + tanh_u);
}
