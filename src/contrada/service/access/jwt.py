"""Bearer tokens of an identity provider (OpenID Connect): signed JSON Web Tokens whose claims name tenant and scopes.

Signatures are those of RS256, ES256 and EdDSA, checked with the provider's public keys. The list of algorithms is ours
and the type of a key fits its algorithm, so a token can choose neither `none` nor an HMAC with a public key as secret.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry

from contrada.service.access.keys import JWT_PREFIX, MAX_PRESENTED, SCOPES, Principal, digest_of, is_name
from contrada.service.access.provider_keys import PAUSE, Key, ProviderKeys, key_reader
from contrada.service.problems import FORBIDDEN, UNAUTHORIZED, Problem
from contrada.service.settings import JwtSettings

# Algorithm: the type of its keys. RFC 9864 calls EdDSA with curve 25519 Ed25519.
ALGORITHMS = {"RS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "Ed25519": "OKP"}
CACHED_TOKENS = 10_000
NEVER = 1e12  # seconds since 1970; a later end may be too large for a float


class TokenHeader(msgspec.Struct):
    """The members of a token's header that choose the key."""

    alg: str
    kid: str | None = None
    crit: Any = None


class _Registry(JWSRegistry):
    """Our algorithms only; EdDSA without the warning that it has a new name, which would be given for each token."""

    max_header_length = 4_096

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name] if name in ALGORITHMS else super().get_alg(name)


_REGISTRY = _Registry(algorithms=list(ALGORITHMS), strict_check_header=False)


class JwtVerifier:
    """Turns bearer tokens into principals.

    A token that was verified is remembered until it expires, `settings.refresh` seconds pass or the provider's keys are
    read again, since a signature takes much longer to verify than a digest to look up.
    """

    def __init__(self, settings: JwtSettings, keys: ProviderKeys | None = None, cached: int = CACHED_TOKENS) -> None:
        self._settings = settings
        self._keys = keys or ProviderKeys(
            key_reader(settings.jwks or ""), settings.refresh, pause=min(PAUSE, settings.refresh)
        )
        self._verified: dict[bytes, tuple[float, Principal]] = {}
        self._most_cached = cached
        self._version = self._keys.version

    async def principal(self, token: bytes, now: float) -> Principal:
        """Return the principal of a token; raise a Problem: 401 if it is not valid now, 403 if it names no tenant."""
        if len(token) > MAX_PRESENTED:
            raise _refused("it is too long")
        digest = digest_of(token)
        expires, principal = self._verified.get(digest, (now, None))
        if principal is not None and now < expires and self._version == self._keys.version:
            return principal
        header = _header_of(token)
        claims = _verified_claims(token, header, await self._keys.find(header.kid, now))
        self._check_times_and_parties(claims, now)
        found = self._principal_of(claims)
        self._remember(digest, min(claims["exp"], now + self._settings.refresh), found)
        return found

    def _check_times_and_parties(self, claims: dict[str, Any], now: float) -> None:
        registry = JWTClaimsRegistry(
            now=int(now),
            leeway=self._settings.leeway,  # type: ignore[arg-type]  # whole seconds are not needed
            iss={"essential": True, "value": self._settings.issuer or ""},
            aud={"essential": True, "value": self._settings.audience or ""},
            exp={"essential": True},
            sub={"essential": True},
        )
        try:
            registry.validate(claims)
        except ExpiredTokenError:
            raise _refused("it has expired") from None
        except JoseError as error:
            raise _refused(error.description) from None

    def _principal_of(self, claims: dict[str, Any]) -> Principal:
        settings = self._settings
        tenant = _claim(claims, settings.tenant_claim)
        if not is_name(tenant) or not is_name(claims["sub"]):
            raise FORBIDDEN(f"the token needs the name of a tenant in the claim {settings.tenant_claim!r}")
        given = _claim(claims, settings.scopes_claim)
        listed = given.split() if isinstance(given, str) else given if isinstance(given, list) else []
        scopes = frozenset(scope for scope in SCOPES if f"{settings.scope_prefix}{scope}" in listed)
        return Principal(
            str(tenant), scopes, f"{JWT_PREFIX}{claims['sub']}", min(claims["exp"], NEVER) + settings.leeway
        )

    def _remember(self, digest: bytes, expires: float, principal: Principal) -> None:
        if self._version != self._keys.version:
            self._verified.clear()
            self._version = self._keys.version
        self._verified.pop(digest, None)
        while len(self._verified) >= self._most_cached:
            del self._verified[next(iter(self._verified))]  # the oldest
        self._verified[digest] = expires, principal


def _header_of(token: bytes) -> TokenHeader:
    """Return the header of a token; it is not to be trusted, and only chooses the key."""
    parts = token.split(b".")
    if len(parts) != 3:
        raise _refused("it has no three parts")
    try:
        header = msgspec.json.decode(base64.urlsafe_b64decode(parts[0] + b"=="), type=TokenHeader)
    except (ValueError, RecursionError):  # of base64 and of JSON
        raise _refused("its header cannot be read") from None
    if header.alg not in ALGORITHMS:
        raise _refused(f"its algorithm is not one of {', '.join(ALGORITHMS)}")
    if header.crit is not None:
        raise _refused("its header has critical extensions")
    return header


def _verified_claims(token: bytes, header: TokenHeader, keys: list[Key]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys signed."""
    for key in keys:
        if key.key_type == ALGORITHMS[header.alg]:
            try:
                return jwt.decode(token, key, registry=_REGISTRY).claims
            except Exception:  # joserfc raises other errors than its own for odd headers and payloads: refused as well
                continue
    raise _refused("no key of the identity provider signed it")


def _claim(claims: dict[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path with dots such as `realm_access.roles`; None if there is none."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _refused(reason: str) -> Problem:
    return UNAUTHORIZED(f"the bearer token is not valid: {reason}")
