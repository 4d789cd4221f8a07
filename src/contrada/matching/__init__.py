"""Messages against subscriptions: the forwarding table."""

from contrada.matching.table import ForwardingTable

__all__ = ["ForwardingTable"]
