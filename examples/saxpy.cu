// y = alpha * x + y: a fixed grid strides over any n
extern "C" __global__ void saxpy(float alpha, const float* x, float* y, int n) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = alpha * x[i] + y[i];
}
