// WRONG (equivalence): the merge forgets the distance of the means
extern "C" __global__ void layernorm_welford(const float* __restrict__ x, const float* __restrict__ gamma,
                                             const float* __restrict__ beta, float* __restrict__ y, int n, float eps) {
    const float* in = x + (size_t)blockIdx.x * n;
    float mean = 0.0f, m2 = 0.0f, count = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) {
        count += 1.0f;
        const float delta = in[i] - mean;
        mean += delta / count;
        m2 += delta * (in[i] - mean);
    }
    for (int mask = 16; mask > 0; mask >>= 1) {
        const float other_mean = __shfl_xor_sync(0xffffffffu, mean, mask);
        const float other_m2 = __shfl_xor_sync(0xffffffffu, m2, mask);
        const float other_count = __shfl_xor_sync(0xffffffffu, count, mask);
        const float total = count + other_count;
        if (total > 0.0f) {
            mean = (mean * count + other_mean * other_count) / total;
            m2 += other_m2;
            count = total;
        }
    }
    const float scale = rsqrtf(m2 / n + eps);
    for (int i = threadIdx.x; i < n; i += 32)
        y[(size_t)blockIdx.x * n + i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
