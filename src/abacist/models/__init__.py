"""The transformer. It knows ids and coordinates, never text.

Shapes are written as letters, the same ones in the whole package:

    B batch (lines)       D width of the residual stream    L layers
    T tokens of a line    F hidden width of the MLP         S steps of generation
    Q query tokens        H heads                           G 1 where all lines share their
    A answer tokens       K width of one head                 coordinates, else B
    V vocabulary          C candidate keys of a query: those in its window, or all T

Arguments and results of the model have lines first: ids (B, T), logits (B, T, V). Inside the
model, tokens come first: the residual stream is (T, B, D). A slice of tokens then is contiguous,
and all heads of all lines form one batch of matrix products without a copy.

Reading order: `coordinates`, `encodings`, `views`, `attention`, `block`, `transformer`; then
`teacher_forcing` (training and scoring) and `decoding` (generation).
"""
