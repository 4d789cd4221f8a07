"""Kernels that follow tracked objects: which subscriptions each is inside of, and what changes at a fix."""
