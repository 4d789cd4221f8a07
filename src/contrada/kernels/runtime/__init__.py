"""What kernels need of the machine: pointers, prefetching, the gate before the GIL."""
