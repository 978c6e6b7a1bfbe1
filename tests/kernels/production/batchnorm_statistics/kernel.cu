// Mean and biased variance of each channel of x[N][C][S], one block a channel.
__device__ float block_sum(float v, float* part) {
    part[threadIdx.x] = v;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    v = part[0];
    __syncthreads();
    return v;
}

extern "C" __global__ void batchnorm_statistics(const float* x, float* mean, float* var, int N, int C, int S) {
    __shared__ float part[256];
    const int c = blockIdx.x;
    float sum = 0.0f, squares = 0.0f;
    for (int n = 0; n < N; ++n) {
        const float* row = x + ((size_t)n * C + c) * S;
        for (int s = threadIdx.x; s < S; s += blockDim.x) {
            const float v = row[s];
            sum += v;
            squares += v * v;
        }
    }
    const float count = (float)N * (float)S;
    const float m = block_sum(sum, part) / count;
    const float m2 = block_sum(squares, part) / count;
    if (threadIdx.x == 0) {
        mean[c] = m;
        var[c] = m2 - m * m;
    }
}
