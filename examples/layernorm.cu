// y = (x - mean) / sqrt(variance + eps) * gain + shift for each row, the variance from the centred values
__device__ float row_sum(float v, float* part) {
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    v = part[0];
    __syncthreads();
    return v;
}

extern "C" __global__ void layernorm(const float* x, const float* gain, const float* shift, float* y, int n, float eps) {
    __shared__ float part[128];
    const float* in = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) sum += in[i];
    const float mean = row_sum(sum, part) / n;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) {
        const float d = in[i] - mean;
        squares += d * d;
    }
    const float scale = rsqrtf(row_sum(squares, part) / n + eps);
    for (int i = threadIdx.x; i < n; i += 128) out[i] = (in[i] - mean) * scale * gain[i] + shift[i];
}
