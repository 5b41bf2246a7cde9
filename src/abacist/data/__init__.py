"""Where problems come from: splits that cannot leak, and streams of batches."""
