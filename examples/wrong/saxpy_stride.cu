// WRONG (equivalence, races): the stride leaves out gridDim.x, so blocks update the same elements
extern "C" __global__ void saxpy(float alpha, const float* x, float* y, int n) {
    const int stride = blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = alpha * x[i] + y[i];
}
