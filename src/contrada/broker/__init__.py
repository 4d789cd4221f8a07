"""Brokers that forward subscriptions and messages along an acyclic network: state machines without I/O.

A broker takes commands and returns effects; who runs it (a simulator, a server) does what the effects say. Between
brokers travel only subscriptions that no other one covers, and only messages that somebody beyond the link asked for.
"""

from contrada.broker.broker import Broker
from contrada.broker.effects import CloseLink, Deliver, Effect, Persist, Refused, RejectedMessages, Send
from contrada.broker.forwarding import LinkOptions

__all__ = [
    "Broker",
    "CloseLink",
    "Deliver",
    "Effect",
    "LinkOptions",
    "Persist",
    "Refused",
    "RejectedMessages",
    "Send",
]
