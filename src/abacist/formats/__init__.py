"""Formats: how problems are written as annotated tokens, and how answers are read back.

>>> format.text(problem)  # 12+34 in the reversed format
'<start>21+43=64<end>'
"""
