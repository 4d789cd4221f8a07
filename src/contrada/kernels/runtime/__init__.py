"""Machine-level helpers of kernels: pointers, prefetching, the gate before the GIL."""
