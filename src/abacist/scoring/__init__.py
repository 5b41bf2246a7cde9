"""Scoring: how often a trained model is right, each figure with its sample size and interval."""
