"""Exports of trained models that work without this package: a web page, PyTorch, ONNX, transformers, the Hub."""
