// WRONG (equivalence): the tail lets the gradient through at zero
extern "C" __global__ void relu_backward(const float* __restrict__ x, const float* __restrict__ dy,
                                         float* __restrict__ dx, int n) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        const float4 v = *reinterpret_cast<const float4*>(x + i), g = *reinterpret_cast<const float4*>(dy + i);
        *reinterpret_cast<float4*>(dx + i) = make_float4(v.x > 0.0f ? g.x : 0.0f, v.y > 0.0f ? g.y : 0.0f,
                                                         v.z > 0.0f ? g.z : 0.0f, v.w > 0.0f ? g.w : 0.0f);
    } else {
        for (int j = i; j < n; ++j) dx[j] = x[j] >= 0.0f ? dy[j] : 0.0f;
    }
}
