// WRONG (equivalence): the halves of x are exchanged
#include <cuda_fp16.h>
extern "C" __global__ void half2_axpy(const __half* __restrict__ x, __half* y, float a, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half2 a2 = __float2half2_rn(a);
    if (2 * i + 1 < n) {
        const __half2 v = __lowhigh2highlow(reinterpret_cast<const __half2*>(x)[i]);
        __half2* to = reinterpret_cast<__half2*>(y) + i;
        *to = __hfma2(a2, v, *to);
    } else if (2 * i < n) {
        y[2 * i] = __hfma(__low2half(a2), x[2 * i], y[2 * i]);
    }
}
