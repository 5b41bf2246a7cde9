"""Types of NumPy arrays, for the code of generation that calculates with a few integers per token."""

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
"""Token ids, positions and coordinates."""
Flags = npt.NDArray[np.bool_]
"""One truth value for each line or token."""
