// y = scale * x: four elements a thread as one float4, the last n % 4 one by one
extern "C" __global__ void scale4(const float* x, float* y, float scale, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int quads = n / 4;
    if (i < quads) {
        float4 v = reinterpret_cast<const float4*>(x)[i];
        v.x *= scale;
        v.y *= scale;
        v.z *= scale;
        v.w *= scale;
        reinterpret_cast<float4*>(y)[i] = v;
    }
    const int tail = 4 * quads + i;
    if (i < n % 4) y[tail] = scale * x[tail];
}
