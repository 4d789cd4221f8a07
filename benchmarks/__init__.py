"""Benchmarks, a folder for each subject: `python -m benchmarks.match --help`, from the root of the repository.

`--write` puts the tables into benchmarks/results. docs/performance.md lists all commands.
"""
