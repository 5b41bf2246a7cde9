"""Tasks: they draw batches of problems and know their exact answers."""
