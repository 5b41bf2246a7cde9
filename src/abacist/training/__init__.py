"""Training: one step, the loop, the optimiser, its schedule, and checkpoints."""
