"""Which subscription covers which."""

from contrada.covering.covering_index import CoveringIndex, Subscribed, Unsubscribed

__all__ = ["CoveringIndex", "Subscribed", "Unsubscribed"]
