"""The command line `contrada`, one file per command."""
