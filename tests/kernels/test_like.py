"""LIKE on bytes against LIKE on code points and against regular expressions."""

import re

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.kernels.match.like import like_matches
from contrada.model.text import ANY_ONE, ANY_RUN, Like, encode_like, encode_text, parse_like
from oracles.plain import like_regex

pytestmark = pytest.mark.jitless

# One to four bytes each, a lone surrogate and the characters special to LIKE; é and ß share their first byte.
LETTERS = "abéß😀\ud800\n%_\\"
words = st.text(LETTERS, max_size=8)
parts = st.sampled_from([*LETTERS, ANY_RUN, ANY_RUN, ANY_ONE])
likes = st.lists(parts, max_size=8).map(Like.of)


@numba.njit
def compiled(pattern, p0, p1, text, t0, t1):
    """What the kernel says; only compiled code can call it."""
    return like_matches(pattern, p0, p1, text, t0, t1)


def padded(code, before, after):
    """The bytes amid others, and where they begin and end."""
    return np.frombuffer(before + code + after, np.uint8), len(before), len(before) + len(code)


def matches(code, text, before=b"", after=b"\xff"):
    answer = compiled(*padded(code, before, after), *padded(encode_text(text), before, after))
    assert answer in (True, False)
    return bool(answer)


@given(likes, words)
@example(parse_like("%ß"), "éß")
@example(parse_like("%_"), "")
@example(parse_like("%b_b%b"), "abébéb")
@example(parse_like("%ab_%b"), "aabab\nb")
@example(parse_like("_"), "")
@example(parse_like("%"), "")
@example(parse_like(""), "")
def test_bytes_match_as_code_points_and_regular_expressions_do(like, text):
    regex = like_regex(like.to_text(), "\\", casei=False, accenti=False)
    expected = re.fullmatch(regex, text, re.DOTALL) is not None
    assert like.matches(text) == expected
    assert matches(encode_like(like), text) == expected


@given(st.lists(parts, max_size=8), words)
def test_patterns_need_no_normal_form(parts, text):
    like = Like(tuple(parts))
    assert matches(encode_like(like), text) == Like.of(parts).matches(text)


@given(likes, words, st.sampled_from([b"a", b"\xa9", b"\xff", b"\xfe", b"\x98\x80"]))
def test_bytes_before_and_after_do_not_count(like, text, other):
    """Not even continuation bytes, which a look beyond the end would take for the end of a code point."""
    assert matches(encode_like(like), text, other, other) == like.matches(text)


@given(words, st.data())
def test_texts_match_patterns_made_of_them(text, data):
    like = Like.of(data.draw(st.sampled_from([letter, letter, ANY_ONE, ANY_RUN])) for letter in text)
    assert like.matches(text)
    assert matches(encode_like(like), text)


def test_matching_does_not_blow_up():
    like = parse_like("%a" * 30 + "%b")
    for text, expected in (("a" * 300, False), ("a" * 300 + "b", True)):
        assert like.matches(text) == matches(encode_like(like), text) == expected
