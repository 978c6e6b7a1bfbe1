// Rotary position embedding of q[T][H][2 * half], in place; the halves of a head are rotated into each other.
extern "C" __global__ void rope(float* q, const float* __restrict__ cosine, const float* __restrict__ sine, int H,
                                int half) {
    const int t = blockIdx.x, h = blockIdx.y;
    float* head = q + ((size_t)t * H + h) * (2 * half);
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const float c = cosine[t * half + i], s = sine[t * half + i];
        const float a = head[i], b = head[i + half];
        head[i] = a * c - b * s;
        head[i + half] = b * c + a * s;
    }
}
