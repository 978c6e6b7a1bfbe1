// WRONG (equivalence): the last row takes the first one of the next plane as its neighbour
extern "C" __global__ void stencil7(const float* __restrict__ u, float* __restrict__ v, int D, int H, int W) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= W || y >= H) return;
    const size_t plane = (size_t)H * W, at = z * plane + (size_t)y * W + x;
    float sum = -6.0f * u[at];
    if (x > 0) sum += u[at - 1];
    if (x < W - 1) sum += u[at + 1];
    if (y > 0) sum += u[at - W];
    if (y < H - 1 || z < D - 1) sum += u[at + W];
    if (z > 0) sum += u[at - plane];
    if (z < D - 1) sum += u[at + plane];
    v[at] = sum;
}
