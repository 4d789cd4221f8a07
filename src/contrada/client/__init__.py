"""Clients of `contrada serve`, synchronous and asynchronous: publish, subscribe, and iterate over matches."""

from contrada.client.answers import (
    BulkResult,
    DryRunResult,
    ExplainResult,
    KeyInfo,
    Match,
    MatchReset,
    Receipt,
    SubscriberInfo,
    SubscriptionInfo,
)
from contrada.client.async_client import AsyncClient
from contrada.client.errors import ClientError, ProblemError, ProtocolError, ResetError, UnreachableError
from contrada.client.streams import AsyncMatchStream
from contrada.client.sync_client import Client, MatchStream

__all__ = [
    "AsyncClient",
    "AsyncMatchStream",
    "BulkResult",
    "Client",
    "ClientError",
    "DryRunResult",
    "ExplainResult",
    "KeyInfo",
    "Match",
    "MatchReset",
    "MatchStream",
    "ProblemError",
    "ProtocolError",
    "Receipt",
    "ResetError",
    "SubscriberInfo",
    "SubscriptionInfo",
    "UnreachableError",
]
