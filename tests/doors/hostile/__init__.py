"""Hostile inputs through every door of the package: only an answer or a ContradaError may come.

`python -m hostile` runs 100,000 inputs in worker processes; `arguments` finds the entry points, `registry` says how
each is driven and with which corpus, `runner` watches the workers.
"""
