"""Stream tokens: short-lived permissions to open one subscriber's stream, for browsers.

A browser's EventSource cannot send an `Authorization` header, so the token stands in the URL, where logs may show it.
It therefore opens one stream of one tenant only, and only for a minute; the stream itself may last longer. The server
signs tokens with HMAC-SHA256 and keeps none of them. Its secret may be made anew at each start.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets

import msgspec

from contrada.service.problems import UNAUTHORIZED, Problem

TOKEN_PREFIX = "cts_"
SECRET_BYTES = 32
MAX_TOKEN = 2_048  # characters; longer ones are refused without being hashed
# Signed together with each token, so that no other use of the secret makes a valid one.
PURPOSE = b"contrada stream token 1\n"


class StreamGrant(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a token allows: to open the stream of a subscriber before `expires` (seconds since 1970, UTC).

    The key that made it has the name `key`; a stream that the token opened ends with that key, at `key_expires`.
    """

    tenant: str
    subscriber: str
    expires: float
    key: str = ""
    key_expires: float | None = None


class StreamTokens:
    """Issues stream tokens and checks them.

    >>> tokens = StreamTokens(bytes(32))
    >>> token = tokens.issue("acme", "ann", now=0.0)
    >>> tokens.check(token, "ann", now=59.0).tenant
    'acme'
    >>> tokens.check(token, "ann", now=60.0)
    Traceback (most recent call last):
    contrada.service.problems.Problem: Unauthorized: the stream token has expired; ask for a new one
    """

    def __init__(self, secret: bytes | None = None, seconds: float = 60.0) -> None:
        self._secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret
        if len(self._secret) < SECRET_BYTES:
            raise ValueError(f"the secret of stream tokens needs {SECRET_BYTES} bytes, got {len(self._secret)}")
        self._seconds = seconds

    def issue(self, tenant: str, subscriber: str, now: float, key: str = "", key_expires: float | None = None) -> str:
        """Return a token with which the stream of a subscriber can be opened until `seconds` after `now`."""
        payload = msgspec.json.encode(StreamGrant(tenant, subscriber, now + self._seconds, key, key_expires))
        return f"{TOKEN_PREFIX}{_text(payload)}.{_text(self._sign(payload))}"

    def check(self, token: str, subscriber: str, now: float) -> StreamGrant:
        """Return what a token allows; raise a Problem (401) unless it is ours, unexpired, and for this subscriber."""
        payload = self._signed_payload(token)
        grant = msgspec.json.decode(payload, type=StreamGrant)
        if grant.subscriber != subscriber:
            raise UNAUTHORIZED("the stream token is for another subscriber")
        if not now < grant.expires:
            raise UNAUTHORIZED("the stream token has expired; ask for a new one")
        return grant

    def _signed_payload(self, token: str) -> bytes:
        found = re.fullmatch(rf"{TOKEN_PREFIX}([\w-]+)\.([\w-]+)", token, re.ASCII) if len(token) <= MAX_TOKEN else None
        if found is None:
            raise _unknown()
        try:
            payload, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in found.groups())
        except binascii.Error:
            raise _unknown() from None
        # The last letter of base64 has bits that count for nothing: a token has one spelling only.
        is_canonical = token == f"{TOKEN_PREFIX}{_text(payload)}.{_text(signature)}"
        if not hmac.compare_digest(self._sign(payload), signature) or not is_canonical:
            raise _unknown()
        return payload

    def _sign(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, PURPOSE + payload, "sha256")


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unknown() -> Problem:
    return UNAUTHORIZED("the stream token is not one of this server; ask for a new one")
