"""The parser of Server-Sent Events against a plain reading of the standard, cut into pieces anywhere."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.client import ProtocolError
from contrada.client.sse import SseEvent, SseParser


def events_by_the_standard(stream: bytes) -> list[tuple[str, str, str]]:
    """The algorithm of the standard on the whole text, step by step."""
    text = stream.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    *lines, _ = re.split("\r\n|\n|\r", text)  # what follows the last end of line is incomplete
    found, data, kind, last_id = [], "", "", ""
    for line in lines:
        if line == "":
            if data != "":
                found.append((kind or "message", data.removesuffix("\n"), last_id))
            data, kind = "", ""
        elif line.startswith(":"):
            continue
        else:
            field, colon, value = line.partition(":")
            if colon and value.startswith(" "):
                value = value[1:]
            if field == "event":
                kind = value
            elif field == "data":
                data += value + "\n"
            elif field == "id" and "\0" not in value:
                last_id = value
    return found


def fed(pieces, **options):
    parser = SseParser(**options)
    return [tuple(event) for piece in pieces for event in parser.feed(piece)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:stop] for start, stop in pairwise(bounds)]


words = st.sampled_from(
    ["", " ", "  x", "12.3", '{"a":1}', "é\u2028ß", "\0", "a\0b", "\ufeff", ":", "a:b", "\x85", "\x0b"]
)
fields = st.sampled_from(["data", "id", "event", "retry", "", "Data", "data ", "comment", "\ufeffdata"])
lines = st.one_of(
    st.builds(lambda field, colon, word: field + colon + word, fields, st.sampled_from([":", ": ", ""]), words),
    st.just(""),
    st.just(""),
)
ends = st.sampled_from(["\n", "\r", "\r\n"])
texts = st.lists(st.tuples(lines, ends)).map(lambda pairs: "".join(line + end for line, end in pairs))
streams = st.one_of(
    st.builds(lambda mark, text, rest: mark + text.encode() + rest,
              st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b"\xef\xbb"]), texts,
              st.sampled_from([b"", b"data: cut", b"\r", b"\xff"])),
    st.lists(st.sampled_from([b"data", b":", b" ", b"\r", b"\n", b"id", b"x", b"\xff", b"\xef\xbb\xbf", b"\0"]))
    .map(b"".join),
)  # fmt: skip


@given(streams, st.lists(st.integers(0, 10_000)))
def test_pieces_make_no_difference(stream, places):
    expected = events_by_the_standard(stream)
    assert fed([stream]) == expected
    assert fed(cut(stream, places)) == expected
    assert fed([bytes([byte]) for byte in stream]) == expected


def test_an_event_counts_as_soon_as_its_empty_line_ends():
    assert fed([b"data: a\r\r"]) == [("message", "a", "")]
    parser = SseParser()
    assert parser.feed(b"data: a\r\n\r") == [SseEvent("message", "a", "")]
    assert parser.feed(b"\ndata: b\n\n") == [SseEvent("message", "b", "")]


def test_an_event_that_is_cut_off_does_not_count():
    assert fed([b'id: 1.1\ndata: {"id":"1.1"}\n\nid: 2.1\ndata: {"id":"2.1"}\n']) == [
        ("message", '{"id":"1.1"}', "1.1")
    ]


@pytest.mark.parametrize(("text", "retry"), [(b"2000", 2000), (b"2s", None), (b"-1", None), ("٣".encode(), None)])
def test_the_time_to_reconnect_has_digits_only(text, retry):
    parser = SseParser()
    assert parser.feed(b"retry: " + text + b"\n\n") == []
    assert parser.retry == retry


def test_an_event_without_end_is_an_error_before_memory_is_full():
    parser = SseParser(most_bytes=100)
    assert len(parser.feed(b"data: x\n\n" * 50)) == 50
    with pytest.raises(ProtocolError, match="more than 100 bytes"):
        fed([b"data: " + b"x" * 50] * 3, most_bytes=100)
    with pytest.raises(ProtocolError, match="more than 100 bytes"):
        fed([b"data: x\n"] * 20, most_bytes=100)
