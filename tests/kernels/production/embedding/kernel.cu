// Rows of a table by token, four floats a thread.
extern "C" __global__ void embedding(const int* __restrict__ tokens, const float4* __restrict__ table,
                                     float4* __restrict__ out, int dim4) {
    const int token = tokens[blockIdx.x];
    for (int i = threadIdx.x; i < dim4; i += blockDim.x) out[(size_t)blockIdx.x * dim4 + i] = table[(size_t)token * dim4 + i];
}
