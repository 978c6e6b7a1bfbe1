// out[perm[i]] = x[i]; perm is a permutation and inverse its inverse.
extern "C" __global__ void scatter_permutation(const float* __restrict__ x, const int* __restrict__ perm,
                                               float* __restrict__ out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[perm[i]] = x[i];
}
