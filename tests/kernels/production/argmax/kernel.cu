// Index of the largest element of each row, the first of equals, one warp a row.
extern "C" __global__ void argmax(const float* __restrict__ x, int* __restrict__ out, int rows, int n) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float best = -INFINITY;
    int at = 0;
    for (int j = threadIdx.x; j < n; j += 32) {
        const float v = x[(size_t)row * n + j];
        if (v > best) {
            best = v;
            at = j;
        }
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float other = __shfl_down_sync(0xffffffffu, best, offset);
        const int other_at = __shfl_down_sync(0xffffffffu, at, offset);
        if (other > best || (other == best && other_at < at)) {
            best = other;
            at = other_at;
        }
    }
    if (threadIdx.x == 0) out[row] = at;
}
