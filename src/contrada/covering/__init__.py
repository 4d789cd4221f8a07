"""Find out which subscriptions others cover, while subscriptions are added and removed."""

from contrada.covering.covering_index import CoveringIndex
from contrada.covering.members import Subscribed, Unsubscribed

__all__ = ["CoveringIndex", "Subscribed", "Unsubscribed"]
