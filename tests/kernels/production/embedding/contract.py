"""Embedding lookup."""

from warpproof import In, Out, Size, contract, f32, i32

tokens_n, vocabulary = Size("tokens_n", min=1, max=2**20), Size("vocabulary", min=1, max=2**22)
dim4 = Size("dim4", min=1, max=2**11)


@contract(kernel="kernel.cu::embedding", grid=(tokens_n,), block=128, where=["0 <= tokens[i] < vocabulary"])
def embedding(tokens: In[i32, tokens_n], table: In[f32, vocabulary, 4 * dim4], out: Out[f32, tokens_n, 4 * dim4],
              dim4: dim4):
    return {"out": table[tokens]}
