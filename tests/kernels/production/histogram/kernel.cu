// Counts of each bin, a block-local histogram added to the global one.
extern "C" __global__ void histogram(const int* __restrict__ x, int* counts, int n) {
    __shared__ int local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(&local[x[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
