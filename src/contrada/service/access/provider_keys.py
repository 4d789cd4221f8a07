"""Public keys of an identity provider: a JSON Web Key Set in a file or at a URL, read again as it changes."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from contrada.service.problems import UNAVAILABLE

Key = RSAKey | ECKey | OKPKey
KEY_TYPES: dict[str, type[Key]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}  # no symmetric keys
MIN_RSA_BYTES = 256  # 2,048 bits
MAX_KEY_SET = 1 << 20  # bytes
READ_SECONDS = 10.0
PAUSE = 60.0  # least seconds between two attempts to read the keys

log = logging.getLogger(__name__)


class KeySetError(ValueError):
    """A key set cannot be read, or has no key that verifies signatures."""


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def parse_keys(data: bytes) -> list[Key]:
    """Return the keys of a key set that can verify signatures; raise KeySetError if there are none.

    Keys of other kinds and for other uses, symmetric keys and short RSA keys are left out.
    """
    try:
        entries = msgspec.json.decode(data, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KeySetError(f"not a JSON Web Key Set: {error}") from error
    keys = [key for entry in entries if (key := _import_key(entry)) is not None]
    if not keys:
        raise KeySetError("the key set has no RSA, EC or OKP key for signatures")
    return keys


def _import_key(entry: dict[str, Any]) -> Key | None:
    kind = KEY_TYPES.get(str(entry.get("kty")))
    try:
        if kind is None or entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
            return None
        if kind is RSAKey and len(base64.urlsafe_b64decode(entry["n"] + "==").lstrip(b"\0")) < MIN_RSA_BYTES:
            return None
        return kind.import_key(entry)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None  # one key that cannot be read must not lock out the holders of the others


def key_reader(source: str, seconds: float = READ_SECONDS) -> Callable[[], Awaitable[bytes]]:
    """Return a function that reads a key set from an http or https URL, or from a file."""

    async def read_url() -> bytes:
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(source, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise KeySetError(f"{source} answers with status {answer.status}")
            data = bytearray()
            async for chunk in answer.content.iter_chunked(1 << 16):
                data += chunk
                if len(data) > MAX_KEY_SET:
                    raise KeySetError(f"{source} has more than {MAX_KEY_SET:,} bytes")
            return bytes(data)

    async def read_path() -> bytes:
        return await asyncio.to_thread(Path(source).read_bytes)

    return read_url if source.startswith(("http://", "https://")) else read_path


class ProviderKeys:
    """The keys of an identity provider, read with `read` at the first use.

    They are read again `refresh` seconds later, and for a key id that is not among them, but not more often than every
    `pause` seconds. If reading fails, the last keys stay in use. `version` counts successful readings.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], refresh: float = 3600.0, pause: float = PAUSE) -> None:
        self._read, self._refresh, self._pause = read, refresh, pause
        self._keys: list[Key] = []
        self._read_at = self._tried_at = float("-inf")
        self._lock = asyncio.Lock()
        self.version = 0

    async def find(self, kid: str | None, now: float) -> list[Key]:
        """Return the keys with an id, or all keys for no id; raise a Problem (503) if no keys could be read yet."""
        is_reading = self._lock.locked()
        if (is_reading and not self._with_id(kid)) or (not is_reading and self._is_due(kid, now)):
            async with self._lock:
                if self._is_due(kid, now):  # not if another request has just read the keys
                    await self._read_again(now)
        if not self._keys:
            wait = max(1.0, self._pause - abs(now - self._tried_at))
            raise UNAVAILABLE("the keys of the identity provider cannot be read", retry_after=wait)
        return self._with_id(kid)

    def _with_id(self, kid: str | None) -> list[Key]:
        return [key for key in self._keys if kid is None or key.kid == kid]

    def _is_due(self, kid: str | None, now: float) -> bool:
        # Distances, so that a clock that is set back delays nothing for long.
        is_old = abs(now - self._read_at) >= self._refresh
        return (is_old or not self._with_id(kid)) and abs(now - self._tried_at) >= self._pause

    async def _read_again(self, now: float) -> None:
        self._tried_at = now
        try:
            self._keys = parse_keys(await self._read())
        except (KeySetError, OSError, aiohttp.ClientError, TimeoutError) as error:
            log.warning("the keys of the identity provider cannot be read: %s", error)
        else:
            self._read_at, self.version = now, self.version + 1
