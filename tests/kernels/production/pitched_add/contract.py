"""Addition of pitched matrices."""

from warpproof import In, Out, Size, cdiv, contract, f32

rows, cols = Size("rows", min=1, max=2**15), Size("cols", min=1, max=2**15)
pitch = Size("pitch", max=2**16, examples=(40, 400, 90))


@contract(kernel="kernel.cu::pitched_add", grid=(cdiv(cols, 32), cdiv(rows, 8)), block=(32, 8), where=[pitch >= cols])
def pitched_add(a: In(strides=(pitch, 1))[f32, rows, cols], b: In(strides=(pitch, 1))[f32, rows, cols],
                c: Out(strides=(pitch, 1))[f32, rows, cols], rows: rows, cols: cols, pitch: pitch):
    return {"c": a + b}
