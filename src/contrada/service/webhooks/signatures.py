"""Signatures after the Standard Webhooks specification: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from hashlib import sha256

from contrada.errors import FormatError

PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64  # of a secret, by the specification
NEW_BYTES = 32


def new_secret() -> str:
    """Return a random secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(NEW_BYTES)).decode()


def secret_bytes(secret: str) -> bytes:
    """Return the key that a secret stands for; the error message does not repeat the secret.

    >>> secret_bytes("whsec_" + "A" * 32) == bytes(24)
    True
    """
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except binascii.Error:
        key = b""
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise FormatError(f"secret: need {PREFIX} and {LEAST_BYTES} to {MOST_BYTES} bytes in base64")
    return key


class Signer:
    """Signs deliveries with one secret, or with two while a secret is being replaced."""

    def __init__(self, *given: str | None) -> None:
        self._keys = [secret_bytes(secret) for secret in given if secret is not None]

    def headers(self, id: str, seconds: int, body: bytes) -> dict[str, str]:
        """Return the headers of one attempt to deliver a body, at a time in seconds since 1970."""
        content = f"{id}.{seconds}.".encode() + body
        signatures = [base64.b64encode(hmac.digest(key, content, sha256)).decode() for key in self._keys]
        return {
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": " ".join("v1," + signature for signature in signatures),
        }
