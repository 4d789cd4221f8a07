"""A server that the tests of clients share."""

from server_process import server

__all__ = ["server"]
