import numpy as np


def reference(x, w, b, stride, cols, eps):
    d = x - x.mean(axis=1, keepdims=True)
    return {"y": d / np.sqrt((d * d).mean(axis=1, keepdims=True) + eps) * w + b}
