"""Habits of other languages get a hint, and relations are printed in OGC's words."""

import pytest

import contrada as ct
from contrada import LanguageError
from contrada.cql2 import to_json

HINTS = {
    "a == 5": "a single =",
    "a === 5": "a single =",
    'kind = "storm"': "single quotes for text, 'storm'",
    '"storm" = kind': "single quotes for text, 'storm'",
    "kind IN (\"storm\", 'flood')": "single quotes for text, 'storm'",
    'kind LIKE "it\'s%"': "single quotes for text, 'it''s%'",
    'kind BETWEEN "a" AND "b"': "single quotes for text, 'a'",
    "kind = storm": "if storm is text, write 'storm'",
    "a = 1 && b = 2": "use AND to join",
    "a = 1 || b = 2": "use OR to join",
    "!(a = 1)": "use NOT to negate",
    "a ! = 1": "<> for unequal",
    "a => 1": "use >= for at least",
    "a =< 1": "use <= for at most",
    "a = ‘x’": "straight single quotes",  # noqa: RUF001 - as editors type it
    "`a` = 1": "double quotes",
    "a = 1;": "remove the semicolon",
}


@pytest.mark.parametrize("text", HINTS)
def test_habits_get_a_hint(text):
    with pytest.raises(LanguageError) as caught:
        ct.parse(text)
    assert HINTS[text] in str(caught.value).splitlines()[0]
    assert caught.value.line == 1


@pytest.mark.parametrize("text", ["= 5", "a = ", "a AND", "a + 1 = 2", 'a = "', "a b", ""])
def test_other_faults_get_none(text):
    with pytest.raises(LanguageError) as caught:
        ct.parse(text)
    assert not any(hint in str(caught.value).splitlines()[0] for hint in HINTS.values())


@pytest.mark.parametrize(
    "word", ["S_DISJOINT", "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS", "inside"]
)
def test_words_of_ogc_are_printed_back(word):
    text = f"{word}(area, POLYGON ((0 0, 4.123456789012345 0, 4 4, 0 0)))"
    assert str(ct.parse(text)) == text
    negated = str(ct.parse(f"NOT {text}"))
    assert negated == {
        "S_DISJOINT": text.replace(word, "S_INTERSECTS"),
        "S_INTERSECTS": text.replace(word, "S_DISJOINT"),
    }.get(word, f"NOT {text}")
    assert to_json(ct.parse(text))["op"] == word.lower()
