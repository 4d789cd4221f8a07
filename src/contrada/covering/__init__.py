"""Which subscriptions are covered by others, live, as subscriptions come and go."""

from contrada.covering.covering_index import CoveringIndex
from contrada.covering.members import Subscribed, Unsubscribed

__all__ = ["CoveringIndex", "Subscribed", "Unsubscribed"]
