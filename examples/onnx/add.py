"""Adds two numbers with `abacist export RUN --to onnx`: `python add.py model.onnx 95 7` prints 102."""

import json
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
tokens = json.loads(session.get_modelmeta().custom_metadata_map["vocabulary"])
a, b = (number[::-1] for number in sys.argv[2:])  # units first
line = ["<start>", *a, "+", *b, "="]
place = [-2, *range(1, len(a) + 1), -1, *range(1, len(b) + 1), 0]
while line[-1] != "<end>":
    inputs = {"ids": [[*map(tokens.index, line)]], "index": [range(len(line))], "place": [place]}
    (logits,) = session.run(None, {name: np.array(rows) for name, rows in inputs.items()})
    line.append(tokens[logits[0, -1].argmax()])
    place.append(place[-1] + 1)
print("".join(line[line.index("=") + 1 : -1])[::-1])
