// WRONG (equivalence): the last pair of eight takes the bias of the pair before it
#include <cuda_fp16.h>
extern "C" __global__ void half2_scale_bias(const uint4* __restrict__ x, const uint4* __restrict__ scale,
                                            const uint4* __restrict__ bias, uint4* __restrict__ y, int n8) {
    for (int i = threadIdx.x; i < n8; i += blockDim.x) {
        uint4 v = x[(size_t)blockIdx.x * n8 + i], s = scale[i], b = bias[i];
        __half2 *vh = reinterpret_cast<__half2*>(&v), *sh = reinterpret_cast<__half2*>(&s);
        const __half2* bh = reinterpret_cast<const __half2*>(&b);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            vh[k] = __hmax2(__hfma2(vh[k], sh[k], bh[k < 3 ? k : 2]), __float2half2_rn(0.0f));
        y[(size_t)blockIdx.x * n8 + i] = v;
    }
}
