// Rows divided by their Euclidean norm, at least eps.
extern "C" __global__ void l2_normalise(const float* __restrict__ x, float* __restrict__ y, int n, float eps) {
    __shared__ float part[128];
    const float* in = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) sum += in[i] * in[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    const float inverse = 1.0f / fmaxf(sqrtf(part[0]), eps);
    for (int i = threadIdx.x; i < n; i += 128) out[i] = in[i] * inverse;
}
