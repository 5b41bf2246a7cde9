"""Training: optimiser, schedule, the loop, checkpoints."""
