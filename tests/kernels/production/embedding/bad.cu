// WRONG (memory): the row offset is computed in 32 bits and wraps for large tables
extern "C" __global__ void embedding(const int* __restrict__ tokens, const float4* __restrict__ table,
                                     float4* __restrict__ out, int dim4) {
    const int token = tokens[blockIdx.x];
    for (int i = threadIdx.x; i < dim4; i += blockDim.x) out[(size_t)blockIdx.x * dim4 + i] = table[token * dim4 + i];
}
