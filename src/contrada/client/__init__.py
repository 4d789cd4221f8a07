"""Clients of `contrada serve`, synchronous and asynchronous: publish, subscribe, and iterate over matches."""

from contrada.client.answers import (
    BulkResult,
    DeadLetterInfo,
    DryRunResult,
    ExplainResult,
    KeyInfo,
    Match,
    MatchReset,
    NetworkInfo,
    Receipt,
    ReplayResult,
    SubscriberInfo,
    SubscriptionInfo,
    TrackInfo,
    WebhookInfo,
    WebhookTest,
)
from contrada.client.async_client import AsyncClient
from contrada.client.errors import ClientError, ProblemError, ProtocolError, ResetError, UnreachableError
from contrada.client.streams import AsyncMatchStream
from contrada.client.sync_client import Client, MatchStream
from contrada.client.tracking import TrackOptions

__all__ = [
    "AsyncClient",
    "AsyncMatchStream",
    "BulkResult",
    "Client",
    "ClientError",
    "DeadLetterInfo",
    "DryRunResult",
    "ExplainResult",
    "KeyInfo",
    "Match",
    "MatchReset",
    "MatchStream",
    "NetworkInfo",
    "ProblemError",
    "ProtocolError",
    "Receipt",
    "ReplayResult",
    "ResetError",
    "SubscriberInfo",
    "SubscriptionInfo",
    "TrackInfo",
    "TrackOptions",
    "UnreachableError",
    "WebhookInfo",
    "WebhookTest",
]
