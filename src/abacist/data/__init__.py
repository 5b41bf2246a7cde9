"""Splits that cannot leak, streams of training batches, and export of problems."""
