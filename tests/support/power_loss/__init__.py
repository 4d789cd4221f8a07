"""Record what a process does to its files, and rebuild what a disk may hold after a power cut at any moment."""
