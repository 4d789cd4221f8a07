"""Room for arrays: where there is none, it is a MemoryError as everywhere else."""

import numpy as np
import pytest

from contrada.index.hugepages import room


def test_no_room_is_a_memory_error():
    with pytest.raises(MemoryError, match="cannot allocate an array of"):
        room((1 << 44,), np.float64)
