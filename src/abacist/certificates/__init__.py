"""Proofs that a trained model is right on all problems of every length."""
