"""Folding is idempotent for all of Unicode; LIKE patterns have one form, print and match as they say."""

import pickle
import re
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import FilterError
from contrada.model.text import (
    ANY_ONE,
    ANY_RUN,
    Like,
    encode_like,
    encode_text,
    fold,
    like_of,
    parse_like,
)

FLAGS = [(False, False), (True, False), (False, True), (True, True)]
# The code points that folding may change; Hangul, which Unicode decomposes by rule, is in the alphabet below.
FOLDED = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if character.casefold() != character
    or unicodedata.decomposition(character)
    or unicodedata.category(character) == "Mn"
]
# Case variants, marks alone and composed, Hangul that composes without marks, characters special to LIKE or to us.
ALPHABET = "aAeEéßẞsS\u017fİ\u0131ΐ\u0345\u03b9ǰ\u0301\u0328가\u1100\u1161\u11a8%_\\!\n\x00\x7f😀\ud800\udc00"
texts = st.text(ALPHABET, max_size=8)
likes = st.lists(texts | st.sampled_from([ANY_RUN, ANY_ONE]), max_size=8).map(Like.of)
flags = st.sampled_from(FLAGS)


@pytest.mark.parametrize(("casei", "accenti"), FLAGS)
def test_every_code_point_folds_to_what_stays(casei, accenti):
    for character in FOLDED:
        folded = fold(character, casei, accenti)
        assert fold(folded, casei, accenti) == folded, hex(ord(character))
        assert not accenti or all(unicodedata.category(c) != "Mn" for c in folded), hex(ord(character))


@given(st.text(max_size=8) | texts, flags)
def test_folding_twice_is_folding_once(text, flags):
    folded = fold(text, *flags)
    assert fold(folded, *flags) == folded
    assert fold(text, True, True) == fold(fold(text, False, True), True, False)
    assert fold(text, False, False) == text


@pytest.mark.parametrize(
    ("text", "casei", "accenti", "expected"),
    [
        ("Straße", True, False, "strasse"),
        ("É", True, False, "é"),
        ("E\u0301", True, False, "e\u0301"),  # casei alone does not normalise
        ("E\u0301", False, True, "E"),
        ("ÅNGSTRÖM \u212b", False, True, "ANGSTROM A"),
        ("Łódź, Ørsted", False, True, "Łodz, Ørsted"),
        ("İI\u0131i", True, True, "ii\u0131i"),  # a dotless i keeps apart
        ("ᾳ", True, True, "\u03b1"),  # the iota below is a mark and goes
        ("ᾳ", True, False, "\u03b1\u03b9"),
        ("\u1100\u1161\u11a8", False, True, "각"),
        ("\ud800é", True, True, "\ud800e"),
        ("", True, True, ""),
    ],
)
def test_foldings_worth_knowing(text, casei, accenti, expected):
    assert fold(text, casei, accenti) == expected


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("", ()),
        ("ab", ("ab",)),
        ("%%", (ANY_RUN,)),
        ("%_%_", (ANY_ONE, ANY_ONE, ANY_RUN)),
        ("a%_b", ("a", ANY_ONE, ANY_RUN, "b")),
        ("a\\%b\\_c\\\\d\\e", ("a%b_c\\de",)),
        ("\\%%", ("%", ANY_RUN)),
    ],
)
def test_parsing_gives_the_normal_form(pattern, parts):
    assert parse_like(pattern).parts == parts


@pytest.mark.parametrize("escape", ["!", "%", "_", "é", "\ud800"])
def test_any_single_character_may_escape(escape):
    assert parse_like(f"a{escape}%{escape}_{escape}{escape}", escape).parts == (f"a%_{escape}",)


@pytest.mark.parametrize("escape", ["", "ab", "e\u0301"])
def test_an_escape_is_one_character(escape):
    with pytest.raises(FilterError, match="need one character, got"):
        parse_like("a", escape)


@pytest.mark.parametrize(
    ("pattern", "escape", "position"), [("\\", "\\", 0), ("a\\\\\\", "\\", 3), ("é!", "!", 1), ("%%%", "%", 2)]
)
def test_an_escape_at_the_end_is_an_error_that_names_its_place(pattern, escape, position):
    with pytest.raises(FilterError, match=f"nothing follows the escape at position {position}$"):
        parse_like(pattern, escape)


@given(likes, flags)
def test_patterns_are_in_normal_form_folded_too_and_print_as_they_parse(like, flags):
    folded = like.folded(*flags)
    assert folded.folded(*flags) == folded
    for one in (like, folded):
        assert Like.of(one.parts) == one
        assert parse_like(one.to_text()) == one
        assert pickle.loads(pickle.dumps(one)) == one
        assert "" not in one.parts
        for part, following in pairwise(one.parts):
            assert isinstance(part, str) != isinstance(following, str) or part is ANY_ONE


def test_what_folding_empties_lets_its_neighbours_join():
    assert parse_like("%\u0301_").folded(False, True) == parse_like("_%")
    assert not parse_like("%_").folded(True, False).matches(fold("", True, False))
    assert parse_like("stra__e").folded(True, False).matches(fold("Straße", True, False))  # _ is one of `ss`


@pytest.mark.parametrize(
    ("pattern", "shape"),
    [
        ("", ("equals", "")),
        ("a\\%", ("equals", "a%")),
        ("%", ("prefix", "")),
        ("a%", ("prefix", "a")),
        ("%a", ("suffix", "a")),
        ("%%a%", ("contains", "a")),
        ("_", ("pattern", None)),
        ("a_%", ("pattern", None)),
        ("a%b", ("pattern", None)),
        ("%a%b%", ("pattern", None)),
    ],
)
def test_shapes(pattern, shape):
    assert parse_like(pattern).shape() == shape


@given(likes, texts)
def test_shapes_say_what_the_pattern_does(like, text):
    kind, literal = like.shape()
    said = {
        "equals": lambda: text == literal,
        "prefix": lambda: text.startswith(literal),
        "suffix": lambda: text.endswith(literal),
        "contains": lambda: literal in text,
        "pattern": lambda: like.matches(text),
    }
    assert said[kind]() == like.matches(text)


@given(texts, texts)
def test_builders_say_what_they_are_named_after(literal, text):
    assert like_of("prefix", literal).matches(text) == text.startswith(literal)
    assert like_of("suffix", literal).matches(text) == text.endswith(literal)
    assert like_of("contains", literal).matches(text) == (literal in text)
    assert like_of("contains", literal).matches(text + literal + text)


@given(likes, likes)
def test_codes_differ_and_hold_the_literals_between_bytes_that_utf8_lacks(like, other):
    code = encode_like(like)
    literals = [encode_text(part) for part in like.parts if isinstance(part, str)]
    assert [run for run in re.split(b"[\xfe\xff]", code) if run] == literals
    assert code.count(b"\xff") == like.parts.count(ANY_RUN)
    assert code.count(b"\xfe") == like.parts.count(ANY_ONE)
    assert (code == encode_like(other)) == (like == other)


@given(texts, texts)
def test_bytes_compare_as_code_points(one, other):
    assert (encode_text(one) < encode_text(other)) == (one < other)
