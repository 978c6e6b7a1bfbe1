// WRONG (equivalence): the output is constant, whatever the input
extern "C" __global__ void scale4(const float* x, float* y, float scale, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int quads = n / 4;
    if (i < quads) {
        const float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        reinterpret_cast<float4*>(y)[i] = v;
    }
    const int tail = 4 * quads + i;
    if (i < n % 4) y[tail] = 0.0f;
}
