// WRONG (equivalence): rounds the length of a chunk down, so that the last elements belong to no thread
extern "C" __global__ void cumsum_chunks(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float sums[32];
    const int t = threadIdx.x, chunk = n / 32;
    const int begin = min(t * chunk, n), end = min((t + 1) * chunk, n);
    const float* row = x + (size_t)blockIdx.x * n;
    float* out = y + (size_t)blockIdx.x * n;
    float sum = 0.0f;
    for (int i = begin; i < end; ++i) sum += row[i];
    sums[t] = sum;
    __syncthreads();
    float before = 0.0f;
    for (int k = 0; k < t; ++k) before += sums[k];
    for (int i = begin; i < end; ++i) {
        before += row[i];
        out[i] = before;
    }
}
