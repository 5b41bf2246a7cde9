"""Looking inside a trained model: activations by name, and lenses that make sense of them."""
