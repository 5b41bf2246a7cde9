"""Trained models in files that work without this package: a web page, a PyTorch module."""
