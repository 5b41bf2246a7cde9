"""A run: one recipe carried out, as a directory that can be resumed, scored and proved."""
