"""Sweeps: many runs over settings and seeds, trained side by side, with one table of results."""
