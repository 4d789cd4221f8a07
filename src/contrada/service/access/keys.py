"""API keys: 256 random bits, kept as SHA-256 digests, with a tenant, scopes and an optional expiry.

A digest needs no salt and no slow hash: a key of 256 random bits cannot be guessed. `KeyRing.find` hashes what was
presented and looks the digest up, so nothing is cached: at about a microsecond it is as fast as a cache by digest.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

import msgspec

from contrada.service.problems import BAD_PARAMETER, FORBIDDEN, KEY_IN_USE, NOT_FOUND, UNAUTHORIZED

KEY_PREFIX = "ctr_"
KEY_BYTES = 32
JWT_PREFIX = "jwt:"  # of the names of those who present tokens of an identity provider
MAX_PRESENTED = 8_192  # bytes of a key or token in a header; longer ones are unknown without being hashed
MAX_NAME = 255  # characters in the name of a tenant or key, as in the subject of an OpenID Connect token

# publish: send messages. subscribe: manage subscriptions and receive their matches. link: be a neighbour in the network
# of the tenant, which means both of these for all its subscribers. admin: manage the server, keys of all tenants
# included; messages and subscriptions of other tenants stay out of reach.
SCOPES = ("publish", "subscribe", "link", "admin")


class Principal(msgspec.Struct, frozen=True):
    """The holder of a key or token: its tenant, what it may do, and the name of the key for logs and rates.

    What it has opened ends at `expires` (seconds since 1970). The holder of a stream token has the name and the end of
    the key that made the token.
    """

    tenant: str
    scopes: frozenset[str]
    name: str
    expires: float | None = None
    is_public: bool = False  # nobody in particular, who may watch the map of the tenant

    def require(self, scope: str) -> None:
        """Raise a Problem (403) if the principal lacks a scope.

        >>> Principal("acme", frozenset({"publish"}), "station-7").require("subscribe")
        Traceback (most recent call last):
        contrada.service.problems.Problem: Forbidden: the key 'station-7' lacks the scope subscribe; it has publish
        """
        if scope not in self.scopes:
            held = ", ".join(sorted(self.scopes)) or "none"
            raise FORBIDDEN(f"the key {self.name!r} lacks the scope {scope}; it has {held}", scope=scope)


class KeyRecord(msgspec.Struct, frozen=True):
    """An API key as it is kept: everything but the key. Times are seconds since 1970 (UTC)."""

    digest: bytes
    name: str
    tenant: str
    scopes: frozenset[str]
    created: float
    expires: float | None = None


def make_key() -> str:
    """Return a new key: `ctr_` and 43 characters of base64url.

    >>> len(make_key()), make_key() == make_key()
    (47, False)
    """
    return KEY_PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).rstrip(b"=").decode()


def digest_of(key: str | bytes) -> bytes:
    """Return the digest under which a key is kept."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key).digest()


def make_record(
    key: str, name: str, tenant: str, scopes: Iterable[str], now: float, expires: float | None = None
) -> KeyRecord:
    """Return the record of a key; raise a Problem (400) if a name or scope is not allowed, or the key has expired."""
    found = frozenset(scopes)
    if not found or not found <= set(SCOPES):
        raise BAD_PARAMETER(f"scopes: need some of {', '.join(SCOPES)}, got {sorted(found)}", attribute="scopes")
    check_name("tenant", tenant)
    check_name("name", name)
    if expires is not None and not now < expires < float("inf"):
        raise BAD_PARAMETER(f"expires: need a time after now, got {expires}", attribute="expires")
    return KeyRecord(digest_of(key), name, tenant, found, now, expires)


def is_name(value: object) -> bool:
    """Return True if a value can name a tenant or a key: 1 to 255 printable characters, no spaces at the ends."""
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable() and value == value.strip()


def check_name(attribute: str, value: str) -> None:
    """Raise a Problem (400) unless `is_name(value)`."""
    if not is_name(value):
        needed = f"need 1 to {MAX_NAME} printable characters without spaces at the ends"
        raise BAD_PARAMETER(f"{attribute}: {needed}, got {value[: MAX_NAME + 1]!r}", attribute=attribute)


def bearer(header: bytes | None) -> bytes:
    """Return the key or token of an `Authorization` header; raise a Problem (401) if there is none.

    >>> bearer(b"Bearer ctr_x")
    b'ctr_x'
    """
    scheme, _, presented = (header or b"").strip().partition(b" ")
    presented = presented.strip()
    if scheme.lower() != b"bearer" or not presented:
        raise UNAUTHORIZED("the request needs the header Authorization: Bearer KEY")
    return presented


class KeyRing:
    """The API keys of a server, found by what a client presents.

    Names are unique within a tenant. The ring keeps nothing on disk: the caller stores the records.

    >>> ring, key = KeyRing(), make_key()
    >>> ring.add(make_record(key, "sensors", "acme", ["publish"], now=0.0, expires=60.0))
    >>> ring.find(key, now=59.9).name, ring.find(key, now=60.0), ring.find("ctr_wrong", now=0.0)
    ('sensors', None, None)
    """

    def __init__(self, records: Iterable[KeyRecord] = ()) -> None:
        self._by_digest: dict[bytes, tuple[KeyRecord, Principal]] = {}
        self._by_name: dict[tuple[str, str], KeyRecord] = {}
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._by_digest)

    def add(self, record: KeyRecord) -> None:
        """Add a key; raise a Problem (409) if the tenant has one of this name, or the key itself is in use."""
        if (record.tenant, record.name) in self._by_name:
            raise KEY_IN_USE(f"tenant {record.tenant!r} has a key named {record.name!r} already", attribute="name")
        if record.digest in self._by_digest:
            raise KEY_IN_USE("this key is in use under another name", attribute="key")
        self._by_name[record.tenant, record.name] = record
        self._by_digest[record.digest] = record, Principal(record.tenant, record.scopes, record.name, record.expires)

    def named(self, tenant: str, name: str) -> KeyRecord | None:
        """Return the record of a key; None if the tenant has none of this name."""
        return self._by_name.get((tenant, name))

    def revoke(self, tenant: str, name: str) -> KeyRecord:
        """Remove a key and return its record; raise a Problem (404) if the tenant has none of this name."""
        record = self._by_name.pop((tenant, name), None)
        if record is None:
            raise NOT_FOUND(f"tenant {tenant!r} has no key named {name!r}")
        del self._by_digest[record.digest]
        return record

    def is_valid(self, tenant: str, name: str, now: float) -> bool:
        """Return True if a tenant has a key of this name that has not expired."""
        record = self._by_name.get((tenant, name))
        return record is not None and (record.expires is None or now < record.expires)

    def records(self, tenant: str | None = None) -> list[KeyRecord]:
        """Return the records of a tenant, or all of them, by tenant and name."""
        return [self._by_name[key] for key in sorted(self._by_name) if tenant is None or key[0] == tenant]

    def holders(self, scope: str, now: float) -> list[tuple[bytes, Principal]]:
        """Return digests of the keys that have a scope and have not expired, and who holds each."""
        return [
            (record.digest, principal)
            for record, principal in self._by_digest.values()
            if scope in record.scopes and (record.expires is None or now < record.expires)
        ]

    def find(self, presented: str | bytes, now: float) -> Principal | None:
        """Return the principal of a key, or None if the key is unknown or has expired.

        The time that the look-up takes tells nothing about kept digests: who presents a key does not choose its digest.
        """
        if len(presented) > MAX_PRESENTED:
            return None
        digest = digest_of(presented)
        found = self._by_digest.get(digest)
        if found is None or not hmac.compare_digest(found[0].digest, digest):
            return None
        record, principal = found
        return principal if record.expires is None or now < record.expires else None
