import asyncio
import base64
import hmac
import json
import warnings
from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from contrada.service.access.jwt import JwtVerifier
from contrada.service.access.keys import MAX_PRESENTED, Principal
from contrada.service.access.provider_keys import ProviderKeys
from contrada.service.problems import Problem
from contrada.service.settings import JwtSettings

NOW = 1_000_000.0
SETTINGS = JwtSettings(issuer="https://id.example", audience="contrada", jwks="keys.json", leeway=5.0)
CLAIMS = {
    "iss": "https://id.example",
    "aud": "contrada",
    "sub": "ann",
    "exp": NOW + 600,
    "tenant": "acme",
    "scope": "publish subscribe openid",
}
ALGORITHMS = ["RS256", "ES256", "EdDSA", "Ed25519"]


@cache
def key_for(algorithm, kid=None):
    parameters = {"kid": kid or algorithm}
    if algorithm in ("RS256", "RS384", "PS256"):
        return RSAKey.generate_key(2048, parameters)
    if algorithm in ("ES256", "ES384"):
        return ECKey.generate_key("P-256" if algorithm == "ES256" else "P-384", parameters)
    return OKPKey.generate_key("Ed25519", parameters)


def key_set(*keys) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def token_of(claims=CLAIMS, algorithm="ES256", key=None, has_id=True, **header) -> bytes:
    key = key or key_for(algorithm)
    header = {"alg": algorithm} | ({"kid": key.kid} if has_id else {}) | header
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joserfc warns of the algorithms that we test for being refused
        return jwt.encode(header, claims, key, algorithms=[algorithm]).encode()


class Provider:
    """An identity provider: answers with a key set, or with an error, and counts how often it is asked."""

    def __init__(self, *keys):
        self.answer, self.asked = key_set(*keys) if keys else OSError("away"), 0

    async def read(self):
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def verifier_of(*keys, settings=SETTINGS, **options):
    return JwtVerifier(settings, ProviderKeys(Provider(*keys or [key_for("ES256")]).read), **options)


def check(verifier, token, now=NOW):
    return asyncio.run(verifier.principal(token, now))


def refused(verifier, token, now=NOW) -> str:
    with pytest.raises(Problem) as caught:
        check(verifier, token, now)
    assert caught.value.status == 401
    return caught.value.detail


def segments(header, claims, signature=b"") -> bytes:
    parts = (msgspec.json.encode(header), msgspec.json.encode(claims), signature)
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_with_our_algorithms_are_taken(algorithm):
    verifier = verifier_of(*map(key_for, ALGORITHMS))
    expected = Principal("acme", frozenset({"publish", "subscribe"}), "jwt:ann", NOW + 605)
    assert check(verifier, token_of(algorithm=algorithm)) == expected


@pytest.mark.parametrize("algorithm", ["RS384", "PS256", "ES384"])
def test_other_algorithms_are_refused(algorithm):
    verifier = verifier_of(key_for(algorithm), key_for("ES256"))
    assert "algorithm" in refused(verifier, token_of(algorithm=algorithm))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "dir"])
def test_unsigned_tokens_are_refused(algorithm):
    verifier = verifier_of(key_for("ES256"))
    for signature in (b"", b"\0" * 64):
        assert "algorithm" in refused(verifier, segments({"alg": algorithm, "kid": "ES256"}, CLAIMS, signature))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_public_key_is_no_secret_of_an_hmac(algorithm):
    public = key_for(algorithm)
    unsigned = segments({"alg": "HS256", "kid": algorithm}, CLAIMS).rstrip(b".")
    for secret in (public.as_pem(), public.as_der(), key_set(public)):
        signature = base64.urlsafe_b64encode(hmac.digest(secret, unsigned, "sha256")).rstrip(b"=")
        assert "algorithm" in refused(verifier_of(public), unsigned + b"." + signature)


def test_a_symmetric_key_in_the_key_set_is_not_used():
    secret = OctKey.generate_key(256, {"kid": "secret"})
    answer = json.dumps({"keys": [secret.as_dict(private=True), key_for("ES256").as_dict(private=False)]}).encode()
    provider = Provider()
    provider.answer = answer
    verifier = JwtVerifier(SETTINGS, ProviderKeys(provider.read))
    assert "algorithm" in refused(verifier, token_of(algorithm="HS256", key=secret))
    assert check(verifier, token_of()).tenant == "acme"


def test_the_type_of_a_key_fits_the_algorithm():
    for algorithm, other in (("RS256", "ES256"), ("ES256", "EdDSA"), ("EdDSA", "RS256")):
        token = token_of(algorithm=algorithm, kid="shared")
        assert "no key" in refused(verifier_of(key_for(other, kid="shared")), token)
    assert "no key" in refused(verifier_of(key_for("ES384", kid="ES256")), token_of())


def test_a_key_for_another_algorithm_is_not_used():
    key = key_for("RS256", kid="for RS512")
    answer = json.dumps({"keys": [key.as_dict(private=False, alg="RS512")]}).encode()
    provider = Provider()
    provider.answer = answer
    assert "no key" in refused(JwtVerifier(SETTINGS, ProviderKeys(provider.read)), token_of(algorithm="RS256", key=key))


def test_another_key_with_the_same_id_is_refused():
    assert "no key" in refused(verifier_of(), token_of(key=ECKey.generate_key("P-256", {"kid": "ES256"})))


def test_a_token_without_key_id_is_tried_with_all_keys():
    verifier = verifier_of(*map(key_for, ALGORITHMS))
    for algorithm in ALGORITHMS:
        assert check(verifier, token_of(algorithm=algorithm, has_id=False)).name == "jwt:ann"


def test_keys_in_the_header_of_the_token_are_not_used():
    own = ECKey.generate_key("P-256", {"kid": "ES256"})
    assert "no key" in refused(verifier_of(), token_of(key=own, jwk=own.as_dict(private=False)))
    with_url = token_of(key=own, jku="https://evil.example/keys")
    assert "no key" in refused(verifier_of(), with_url)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"exp": NOW - 5}, "expired"),
        ({"exp": 0}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "tomorrow"}, "exp"),
        ({"exp": True}, "exp"),
        ({"nbf": NOW + 6}, "not yet valid"),
        ({"nbf": "x"}, "nbf"),
        ({"iat": NOW + 6}, "future"),
        ({"iss": "https://other.example"}, "iss"),
        ({"iss": "https://id.example/"}, "iss"),
        ({"iss": ["https://id.example"]}, "iss"),
        ({"iss": None}, "iss"),
        ({"aud": "other"}, "aud"),
        ({"aud": ["other", "third"]}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": ""}, "aud"),
        ({"aud": {"contrada": True}}, "aud"),
        ({"aud": None}, "aud"),
        ({"sub": None}, "sub"),
        ({"sub": 7}, "sub"),
        ({"sub": ""}, "sub"),
    ],
)
def test_times_and_parties_are_checked(change, reason):
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    assert reason in refused(verifier_of(), token_of(claims))


@pytest.mark.parametrize(
    "change",
    [
        {"exp": NOW - 4},
        {"exp": NOW + 0.5},
        {"exp": 10**400},
        {"nbf": NOW + 5},
        {"iat": NOW - 1e6},
        {"aud": ["other", "contrada"]},
    ],
)
def test_clocks_may_differ_and_audiences_be_many(change):
    assert check(verifier_of(), token_of({**CLAIMS, **change})).tenant == "acme"


def test_nan_is_no_time():
    text = json.dumps({**CLAIMS, "exp": float("nan")})
    assert "NaN" in text
    assert "exp" in refused(verifier_of(), token_of({**CLAIMS, "exp": float("nan")}))


def test_a_token_ends_although_it_was_verified_before():
    verifier = verifier_of()
    token = token_of()
    assert check(verifier, token, NOW + 604.9).tenant == "acme"
    assert "expired" in refused(verifier, token, NOW + 606)
    assert "expired" in refused(verifier, token, NOW + 1e6)


@pytest.mark.parametrize(
    ("scope", "prefix", "held"),
    [
        ("publish", "", {"publish"}),
        ("publish  subscribe\tadmin", "", {"publish", "subscribe", "admin"}),
        (["publish", "admin", 7, None], "", {"publish", "admin"}),
        ("contrada:publish subscribe", "contrada:", {"publish"}),
        ("Publish publishing", "", set()),
        ("", "", set()),
        (None, "", set()),
        (17, "", set()),
        ({"publish": True}, "", set()),
    ],
)
def test_scopes(scope, prefix, held):
    settings = msgspec.structs.replace(SETTINGS, scope_prefix=prefix)
    assert check(verifier_of(settings=settings), token_of({**CLAIMS, "scope": scope})).scopes == held


@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("org", {"org": "acme"}),
        ("https://claims.example/tenant", {"https://claims.example/tenant": "acme"}),
        ("resource.contrada.tenant", {"resource": {"contrada": {"tenant": "acme"}}}),
        ("a.b", {"a.b": "acme", "a": {"b": "other"}}),
    ],
)
def test_claims_have_names_or_paths(name, claims):
    settings = msgspec.structs.replace(SETTINGS, tenant_claim=name)
    assert check(verifier_of(settings=settings), token_of({**CLAIMS, **claims})).tenant == "acme"


@pytest.mark.parametrize("tenant", [None, "", " ", 7, ["acme"], "a\nb", "x" * 300, {"name": "acme"}])
def test_a_token_without_tenant_is_forbidden(tenant):
    with pytest.raises(Problem) as caught:
        check(verifier_of(), token_of({**CLAIMS, "tenant": tenant}))
    assert caught.value.status == 403


@pytest.mark.parametrize("crit", [["exp"], ["b64"], [], 5, "b64"])
def test_critical_extensions_are_refused(crit):
    header, _, rest = token_of().partition(b".")
    changed = {**json.loads(base64.urlsafe_b64decode(header + b"==")), "crit": crit}
    token = base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=") + b"." + rest
    assert "critical" in refused(verifier_of(), token)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b".",
        b"..",
        b"...",
        b"a.b.c",
        b"a.b.c.d.e",
        b"\xff\xfe.\xff.\xff",
        b"e30.e30.e30",
        segments(["alg"], {}),
        segments("alg", {}),
        segments({"alg": ["ES256"]}, {}),
        segments({"alg": "ES256", "kid": 7}, CLAIMS),
        segments({"alg": "ES256", "kid": "ES256"}, [1]),
        segments({"alg": "ES256"}, CLAIMS, b"x" * 64),
        segments({"alg": "RS256"}, CLAIMS, b"x" * 256),
        b"W1tb" * 1000 + b".e30.e30",
        b"x" * (MAX_PRESENTED + 1),
    ],
)
def test_other_texts_are_refused(token):
    assert refused(verifier_of(key_for("ES256"), key_for("RS256")), token)


@given(st.data())
def test_a_changed_token_is_refused(data):
    token = token_of()
    place = data.draw(st.integers(0, len(token) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != token[place]))
    changed = token[:place] + bytes([byte]) + token[place + 1 :]
    verifier = verifier_of()
    try:
        principal = check(verifier, changed)
    except Problem as problem:
        assert problem.status == 401  # noqa: PT017
    else:  # the signature's last letter has bits that count for nothing: the same token, spelled otherwise
        assert (place, principal.name) == (len(token) - 1, "jwt:ann")


@given(st.binary(max_size=200))
def test_bytes_are_refused(token):
    refused(verifier_of(), token)


def test_verified_tokens_are_remembered_but_not_without_bound():
    provider = Provider(key_for("ES256"))
    verifier = JwtVerifier(SETTINGS, ProviderKeys(provider.read), cached=2)
    tokens = [token_of({**CLAIMS, "sub": f"subject {number}"}) for number in range(5)]
    for _ in range(2):
        names = [check(verifier, token).name for token in tokens]
        assert names == [f"jwt:subject {number}" for number in range(5)]
    assert provider.asked == 1


def test_a_key_that_the_provider_withdrew_is_refused_for_verified_tokens_too():
    provider = Provider(key_for("ES256"), key_for("RS256"))
    verifier = JwtVerifier(SETTINGS, ProviderKeys(provider.read, refresh=SETTINGS.refresh))
    token = token_of({**CLAIMS, "exp": NOW + 1e6})
    assert check(verifier, token)
    provider.answer = key_set(key_for("RS256"))
    assert check(verifier, token, NOW + 60)  # nothing has asked for keys since
    assert "no key" in refused(verifier, token, NOW + SETTINGS.refresh)


def test_keys_that_were_read_again_verify_remembered_tokens_again():
    provider = Provider(key_for("ES256"))
    verifier = JwtVerifier(SETTINGS, ProviderKeys(provider.read))
    token = token_of()
    assert check(verifier, token)
    provider.answer = key_set(key_for("RS256"))
    assert check(verifier, token_of(algorithm="RS256"), NOW + 61)  # an unknown key id: the keys are read again
    assert "no key" in refused(verifier, token, NOW + 62)


def test_without_keys_the_answer_is_503():
    verifier = JwtVerifier(SETTINGS, ProviderKeys(Provider().read))
    with pytest.raises(Problem) as caught:
        check(verifier, token_of())
    assert caught.value.status == 503
    assert "Retry-After" in caught.value.headers()
