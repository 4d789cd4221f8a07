"""Hostile inputs through every door of the package: an answer or a ContradaError, in 5 s and 1 GB, is all that may come.

`python -m hostile` runs 100,000 inputs in worker processes; `enumeration` finds the doors, `registry` says how each is
driven and with which corpus, `runner` watches the workers.
"""
