"""What is asked: tasks draw batches of problems and know their exact answers."""
