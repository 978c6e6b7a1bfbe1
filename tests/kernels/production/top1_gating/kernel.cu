// The largest expert of each token and its softmax weight, a thread a token.
extern "C" __global__ void top1_gating(const float* __restrict__ logits, float* __restrict__ weight,
                                       int* __restrict__ expert, int tokens, int experts) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tokens) return;
    const float* row = logits + (size_t)t * experts;
    float top = row[0];
    int best = 0;
    for (int e = 1; e < experts; ++e)
        if (row[e] > top) {
            top = row[e];
            best = e;
        }
    float sum = 0.0f;
    for (int e = 0; e < experts; ++e) sum += __expf(row[e] - top);
    weight[t] = 1.0f / sum;
    expert[t] = best;
}
