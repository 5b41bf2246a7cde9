"""The transformer. Knows ids and coordinates, never text.

One legend of shapes for the whole package: B batch, T token, D width, H head, K head width,
F MLP width, V vocabulary, L layer, S slot of a window, N operand, W digit column; G is 1 where
all lines of a batch share their coordinates and B where they do not; Q query tokens.

Outside, lines come first: ids (B, T), logits (B, T, V). Inside, tokens come first: the residual
stream is (T, B, D). So a slice of tokens stays contiguous, and all heads of all lines form one
batch of matrix products without a copy.
"""
