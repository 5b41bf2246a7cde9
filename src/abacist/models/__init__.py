"""The transformer. It knows ids and coordinates, never text.

Shapes are written as letters, the same ones in the whole package:

    B batch (lines)        D width of the residual stream     G 1 where all lines share their
    T tokens of a line     F hidden width of the MLP            coordinates, else B
    Q query tokens         H heads                            C candidate keys of a query
    A answer tokens        K width of one head                V vocabulary
                                                              L layers

Arguments and results of the model have lines first: ids (B, T), logits (B, T, V). Inside the
model, tokens come first: the residual stream is (T, B, D). A slice of tokens then is contiguous,
and all heads of all lines form one batch of matrix products without a copy.

Reading order: `coordinates`, `encodings`, `views`, `attention`, `block`, `transformer`; then
`teacher_forcing` (training and scoring) and `decoding` (generation).
"""
