"""Match messages against subscriptions with a forwarding table."""

from contrada.matching.answer import ManyMatches, Matches
from contrada.matching.explain import Explanation
from contrada.matching.matching_table import Stats
from contrada.matching.subscriber_table import SubscriberTable
from contrada.matching.table import ForwardingTable
from contrada.simplification.simplifying import Simplification, simplify

__all__ = [
    "Explanation",
    "ForwardingTable",
    "ManyMatches",
    "Matches",
    "Simplification",
    "Stats",
    "SubscriberTable",
    "simplify",
]
