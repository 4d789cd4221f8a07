"""Messages against subscriptions: the forwarding table."""

from contrada.matching.explain import Explanation
from contrada.matching.simplification import Simplification, simplify
from contrada.matching.table import ForwardingTable

__all__ = ["Explanation", "ForwardingTable", "Simplification", "simplify"]
