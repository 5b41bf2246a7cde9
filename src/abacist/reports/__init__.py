"""Pictures and reports, drawn from records. Imports no torch."""
