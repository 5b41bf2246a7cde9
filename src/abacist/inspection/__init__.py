"""Inspection of trained models: activations by name, and lenses that summarise them."""
