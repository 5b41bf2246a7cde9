"""How problems are written: formats turn problems into annotated tokens and read answers back."""
