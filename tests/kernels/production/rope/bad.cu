// WRONG (equivalence): the second half is computed from the first one's new value
extern "C" __global__ void rope(float* q, const float* __restrict__ cosine, const float* __restrict__ sine, int H,
                                int half) {
    const int t = blockIdx.x, h = blockIdx.y;
    float* head = q + ((size_t)t * H + h) * (2 * half);
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const float c = cosine[t * half + i], s = sine[t * half + i];
        head[i] = head[i] * c - head[i + half] * s;
        head[i + half] = head[i + half] * c + head[i] * s;
    }
}
