import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.service.access.tokens import MAX_TOKEN, StreamTokens
from contrada.service.problems import Problem

ANY_TEXT = st.text(st.characters(exclude_categories=()))
SECRET = bytes(range(32))


def refused(tokens, token, subscriber="ann", now=0.0) -> str:
    with pytest.raises(Problem) as caught:
        tokens.check(token, subscriber, now)
    assert caught.value.status == 401
    return caught.value.detail


@given(tenant=st.text(max_size=60), subscriber=st.text(max_size=60), now=st.floats(0, 1e10))
def test_a_token_allows_what_it_was_issued_for(tenant, subscriber, now):
    tokens = StreamTokens(SECRET)
    token = tokens.issue(tenant, subscriber, now)
    assert token.isascii()
    assert not set(token) & set("/+=&?#% ")  # stands in a URL as it is
    grant = tokens.check(token, subscriber, now + 59)
    assert (grant.tenant, grant.subscriber) == (tenant, subscriber)


def test_a_token_expires():
    tokens = StreamTokens(SECRET, seconds=5.0)
    token = tokens.issue("acme", "ann", 100.0)
    assert tokens.check(token, "ann", 104.9).expires == 105.0
    assert "expired" in refused(tokens, token, now=105.0)
    assert "expired" in refused(tokens, token, now=float("nan"))


def test_a_token_is_for_one_subscriber():
    tokens = StreamTokens(SECRET)
    assert "another subscriber" in refused(tokens, tokens.issue("acme", "ann", 0.0), "bob")


def test_servers_with_different_secrets_do_not_know_each_others_tokens():
    token = StreamTokens().issue("acme", "ann", 0.0)
    assert "not one of this server" in refused(StreamTokens(), token)
    assert "not one of this server" in refused(StreamTokens(SECRET), token)


@given(st.data())
def test_a_changed_token_is_refused(data):
    tokens = StreamTokens(SECRET)
    token = tokens.issue("acme", "ann", 0.0)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.characters(exclude_categories=()).filter(lambda letter: letter != token[place]))
    refused(tokens, token[:place] + letter + token[place + 1 :])


def test_a_payload_of_ones_own_needs_the_signature_of_its_own():
    tokens = StreamTokens(SECRET)
    payload, _, signature = tokens.issue("acme", "ann", 0.0).removeprefix("cts_").partition(".")
    forged = base64.urlsafe_b64encode(msgspec.json.encode(["other", "ann", 1e12])).rstrip(b"=").decode()
    refused(tokens, f"cts_{forged}.{signature}")
    refused(tokens, f"cts_{forged}.{payload}")
    refused(tokens, f"{payload}.{signature}")
    refused(tokens, f"cts_{payload}")
    refused(tokens, f"cts_{payload}.")
    refused(tokens, f"cts_{payload}.{signature}.")
    refused(tokens, f"cts_{payload}.{signature}\n")


@given(ANY_TEXT | st.from_regex(r"cts_[\w-]{0,30}\.[\w-]{0,50}"))
def test_other_texts_are_refused(text):
    refused(StreamTokens(SECRET), text)


def test_long_tokens_are_refused():
    tokens = StreamTokens(SECRET)
    assert "not one of this server" in refused(tokens, tokens.issue("x" * MAX_TOKEN, "ann", 0.0))


def test_a_short_secret_is_refused():
    with pytest.raises(ValueError, match="32 bytes, got 31"):
        StreamTokens(bytes(31))
