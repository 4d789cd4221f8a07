import re
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from contrada.service.access.keys import (
    MAX_NAME,
    MAX_PRESENTED,
    SCOPES,
    KeyRecord,
    KeyRing,
    Principal,
    bearer,
    digest_of,
    is_name,
    make_key,
    make_record,
)
from contrada.service.problems import Problem

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def status_of(call, *arguments, **named) -> int:
    with pytest.raises(Problem) as caught:
        call(*arguments, **named)
    return caught.value.status


@pytest.fixture
def ring():
    return KeyRing([make_record("ctr_a", "a", "acme", ["publish"], now=0.0)])


def test_keys_are_256_random_bits_in_base64url():
    keys = {make_key() for _ in range(1000)}
    assert len(keys) == 1000
    for key in keys:
        assert re.fullmatch(r"ctr_[A-Za-z0-9_-]{43}", key)
    letters = set("".join(key.removeprefix("ctr_") for key in keys))
    assert letters == set(string.ascii_letters + string.digits + "-_")


def test_a_record_holds_the_digest_and_never_the_key():
    key = make_key()
    record = make_record(key, "sensors", "acme", SCOPES, now=5.0, expires=6.0)
    assert record.digest == digest_of(key) == digest_of(key.encode())
    assert key.removeprefix("ctr_") not in repr(record)
    stored = msgspec.json.encode(record)
    assert key.encode() not in stored
    assert msgspec.json.decode(stored, type=KeyRecord) == record


def test_a_key_is_found_as_text_and_as_bytes(ring):
    assert ring.find("ctr_a", 0.0) == ring.find(b"ctr_a", 0.0) == Principal("acme", frozenset({"publish"}), "a")


@given(presented=ANY_TEXT | st.binary())
def test_other_keys_are_unknown(presented):
    ring = KeyRing([make_record("ctr_a", "a", "acme", ["publish"], now=0.0)])
    assert (ring.find(presented, 0.0) is None) == (presented not in ("ctr_a", b"ctr_a"))


@pytest.mark.parametrize(
    "wrong", ["", "ctr_", "ctr_A", "ctr_a ", " ctr_a", "ctr_a\0", "CTR_a", "a", digest_of("ctr_a")]
)
def test_near_misses_and_the_digest_itself_are_unknown(ring, wrong):
    assert ring.find(wrong, 0.0) is None


def test_very_long_keys_are_unknown(ring):
    key = "x" * (MAX_PRESENTED + 1)
    ring.add(make_record(key, "long", "acme", ["publish"], now=0.0))
    assert ring.find(key, 0.0) is None


def test_a_key_ends_with_its_time():
    ring = KeyRing([make_record("ctr_a", "a", "acme", ["publish"], now=0.0, expires=10.0)])
    assert [ring.find("ctr_a", now) is not None for now in (-1.0, 0.0, 9.99, 10.0, 11.0)] == [True] * 3 + [False] * 2


def test_a_revoked_key_is_unknown_at_once(ring):
    assert ring.find("ctr_a", 0.0)
    assert ring.revoke("acme", "a").name == "a"
    assert ring.find("ctr_a", 0.0) is None
    assert len(ring) == 0
    assert status_of(ring.revoke, "acme", "a") == 404


def test_names_are_unique_within_a_tenant_and_keys_everywhere(ring):
    assert status_of(ring.add, make_record("ctr_b", "a", "acme", ["admin"], now=0.0)) == 409
    assert ring.find("ctr_b", 0.0) is None
    assert status_of(ring.add, make_record("ctr_a", "b", "other", ["admin"], now=0.0)) == 409
    assert [record.name for record in ring.records()] == ["a"]
    ring.add(make_record("ctr_b", "a", "other", ["admin"], now=0.0))
    assert ring.find("ctr_b", 0.0).tenant == "other"
    assert status_of(ring.revoke, "third", "a") == 404
    assert [record.tenant for record in ring.records()] == ["acme", "other"]
    assert [record.digest for record in ring.records("other")] == [digest_of("ctr_b")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": []},
        {"scopes": ["publish", "root"]},
        {"scopes": "publish"},
        {"tenant": ""},
        {"tenant": " acme"},
        {"tenant": "x" * (MAX_NAME + 1)},
        {"name": "a\nb"},
        {"name": "\ud800"},
        {"expires": 0.0},
        {"expires": -1.0},
        {"expires": float("nan")},
        {"expires": float("inf")},
    ],
)
def test_bad_records_are_refused(wrong):
    good = {"name": "a", "tenant": "acme", "scopes": ["publish"]}
    with pytest.raises(Problem) as caught:
        make_record("ctr_a", now=0.0, **(good | wrong))
    assert caught.value.status == 400
    assert caught.value.members["attribute"] == next(iter(wrong))
    assert caught.value.body()


@given(ANY_TEXT | st.none() | st.integers())
def test_names_can_be_written_in_utf_8_and_shown(value):
    if is_name(value):
        assert value.encode()
        assert not set(value) & set("\r\n\t\0")


def test_scopes_are_required_one_by_one():
    for held in SCOPES:
        principal = Principal("acme", frozenset({held}), "a")
        principal.require(held)
        assert [status_of(principal.require, other) for other in SCOPES if other != held] == [403] * (len(SCOPES) - 1)
    assert status_of(Principal("acme", frozenset(), "a").require, "publish") == 403


@pytest.mark.parametrize("header", [b"Bearer k", b"bearer k", b"BEARER  k ", b" Bearer k"])
def test_bearer_headers(header):
    assert bearer(header) == b"k"


@pytest.mark.parametrize(
    "header", [None, b"", b"Bearer", b"Bearer ", b"k", b"Basic k", b"Bearerk", b"\xff\xfe", b"Bearer:k"]
)
def test_headers_without_a_key(header):
    assert status_of(bearer, header) == 401


class Rings(RuleBasedStateMachine):
    """A ring against a plain list of records."""

    def __init__(self):
        super().__init__()
        self.ring, self.kept = KeyRing(), []

    @rule(
        key=st.sampled_from("pqrs"),
        name=st.sampled_from("ab"),
        tenant=st.sampled_from("tu"),
        end=st.none() | st.just(5.0),
    )
    def add(self, key, name, tenant, end):
        record = make_record(key, name, tenant, ["publish"], now=0.0, expires=end)
        taken = any((old.tenant, old.name) == (tenant, name) or old.digest == record.digest for old in self.kept)
        if taken:
            assert status_of(self.ring.add, record) == 409
        else:
            self.ring.add(record)
            self.kept.append(record)

    @rule(name=st.sampled_from("ab"), tenant=st.sampled_from("tu"))
    def revoke(self, name, tenant):
        found = [old for old in self.kept if (old.tenant, old.name) == (tenant, name)]
        if found:
            assert self.ring.revoke(tenant, name) == found[0]
            self.kept.remove(found[0])
        else:
            assert status_of(self.ring.revoke, tenant, name) == 404

    @invariant()
    def agree(self):
        for key in "pqrs":
            for now in (0.0, 5.0):
                expected = [
                    (old.tenant, old.name)
                    for old in self.kept
                    if old.digest == digest_of(key) and (old.expires is None or now < old.expires)
                ]
                found = self.ring.find(key, now)
                assert ([] if found is None else [(found.tenant, found.name)]) == expected
        assert sorted(self.ring.records(), key=lambda record: record.digest) == sorted(
            self.kept, key=lambda record: record.digest
        )


TestRings = Rings.TestCase
