"""What a trained model is worth: every figure with its sample size and interval."""
