// y[r] = sum of row r: one block a row, a tree over shared memory
extern "C" __global__ void block_sum(const float* x, float* y, int n) {
    __shared__ float part[256];
    const int t = threadIdx.x;
    const float* row = x + (size_t)blockIdx.x * n;
    float sum = 0.0f;
    for (int i = t; i < n; i += 256) sum += row[i];
    part[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = part[0];
}
