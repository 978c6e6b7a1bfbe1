// WRONG (equivalence): gathers where it should scatter
extern "C" __global__ void scatter_permutation(const float* __restrict__ x, const int* __restrict__ perm,
                                               float* __restrict__ out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[perm[i]];
}
