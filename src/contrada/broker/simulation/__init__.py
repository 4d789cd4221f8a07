"""Simulate a network of brokers in one process, in virtual time, from a seed."""
