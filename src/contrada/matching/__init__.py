"""Messages against subscriptions: the forwarding table."""

from contrada.matching.explain import Explanation
from contrada.matching.table import ForwardingTable
from contrada.simplify.simplification import Simplification, simplify

__all__ = ["Explanation", "ForwardingTable", "Simplification", "simplify"]
