"""Inputs below 1 MB that once took gigabytes or minutes.

`python small_inputs.py GROUP` runs a group of CASES; a line of JSON says what came, what should, and the peak.
"""

import io
import json
import math
import os
import resource
import sys

import pyarrow as pa
import pyarrow.parquet as pq

import contrada as ct
from contrada.formats.reading import read_messages
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import read_subscription_table
from generators.columnar import parquet_bytes

HEAD = (
    '<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>7</identifier><sender>s</sender>'
    "<sent>2024-05-01T12:00:00-00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>"
)
INFO = (
    "<info><category>Met</category><event>Storm</event><urgency>Immediate</urgency><severity>Severe</severity>"
    "<certainty>Likely</certainty><area><areaDesc>x</areaDesc>%s</area></info>"
)
GEOCODE = "<geocode><valueName>U</valueName><value>1</value></geocode>"


def read(data, format, **options):
    """How many messages are given, and how many are rejected."""
    assert len(data) < 1 << 20
    found = [isinstance(item, Rejected) for item in read_messages(io.BytesIO(data), format, **options)]
    return [found.count(False), found.count(True)]


def collection(crs):
    features = ",".join(['{"type":"Feature","geometry":null}'] * 20_000)
    return f'{{"type":"FeatureCollection","crs":{crs % ("y" * 300_000)},"features":[{features}]}}'.encode()


def namespace(length, elements):
    return b'<alert xmlns="' + b"n" * length + b'">' + b"<a/>" * elements + b"</alert>"


def alert(area, infos=1):
    return (HEAD + INFO % area * infos + "</alert>").encode()


def zones():
    turns = [2 * math.pi * k / 20_000 for k in range(20_000)]
    return {("U", "1"): ct.Region([(math.cos(turn), math.sin(turn)) for turn in turns], crs="OGC:CRS84")}


def nested(inner, wrap, depth):
    for _ in range(depth):
        inner = wrap(inner)
    return json.dumps(inner).encode()


def csv(*names):
    row = ",".join(names)
    return f"{row}\n{row}\n".encode()


def one_long_value():
    """A dictionary of one value in one row group: a column chunk of 500 KB that says 8,192 rows."""
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * 8192, pa.int32()), ["x" * 500_000])
    return parquet_bytes(pa.table({"a": codes}), compression="zstd", store_schema=False)


def rows_of_a_template(data):
    found = read_subscription_table(io.BytesIO(data), ct.parse("a = $a"), "parquet")
    return [found.table.num_rows, len(found.rejected)]


def long_values():
    """4,000 rows of the same 500 KB without a dictionary, in pages that compress well."""
    sink, piece = io.BytesIO(), pa.table({"a": pa.array(["x" * 500_000] * 100)})
    with pq.ParquetWriter(sink, piece.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(40):
            writer.write_table(piece)
    return sink.getvalue()


def parse(text):
    """The number of filters, or the error."""
    assert len(text) < 1 << 20
    try:
        return len(ct.parse(text))
    except ct.ContradaError as error:
        return type(error).__name__ if len(str(error)) < 1000 else "a long message"


def match(filters, message):
    """How many match, packed or not."""
    table = ct.ForwardingTable()
    for key, asked in enumerate(filters):
        table.subscribe(key, asked)
    before = len(table.match(message))
    table.pack()
    assert len(table.match(message)) == before
    return before


def like(text, *patterns):
    return match([ct.Constraint("t", "like", pattern) for pattern in patterns], {"t": text})


def simplify_likes(*patterns):
    asked = [ct.Filter([ct.Constraint("t", "like", pattern)]) for pattern in patterns]
    return len(ct.simplify(ct.Predicate(asked)))


CASES = {  # by group and name: what should come, and how
    "read": {
        "crs of a collection": ([0, 20_000], lambda: read(collection('{"x":"%s"}'), "json")),
        "name of a crs": ([0, 20_000], lambda: read(collection('{"type":"name","properties":{"name":"%s"}}'), "json")),
        "long namespace": ([0, 1], lambda: read(namespace(100_000, 64_000), "cap")),
        "allowed namespace": ([0, 1], lambda: read(namespace(4_000, 200_000), "cap")),
        "equal geocodes": ([1, 0], lambda: read(alert(GEOCODE * 14_000), "cap", zones=zones())),
        "equal circles": ([1, 0], lambda: read(alert("<circle>10,10 5</circle>" * 8_000), "cap")),
        "nearly equal circles": (
            [1, 0],
            lambda: read(alert("".join(f"<circle>10.{k:07d},10 5</circle>" for k in range(8_000))), "cap"),
        ),
        # Messages without their areas.
        "bad blocks": ([3_000, 3_000], lambda: read(alert("<polygon>1,1</polygon>", infos=3_000), "cap")),
        "deep names": (
            [0, 1],
            lambda: read(nested({f"k{k}": 1 for k in range(40_000)}, lambda x: {"n" * 1_500: x}, 60), "ndjson"),
        ),
        "many names": ([0, 1], lambda: read(json.dumps({f"k{k}": 1 for k in range(60_000)}).encode(), "ndjson")),
        "pages": ([0, 1], lambda: read(long_values(), "parquet")),
        "nulls": ([0, 1], lambda: read(parquet_bytes(pa.table({"a": pa.nulls(100_000_000)})), "parquet")),
        "csv header": ([0, 1], lambda: read(csv(*(f"n{k}" for k in range(32_000))), "csv")),
        "csv header twice": ([0, 1], lambda: read(csv("a", *(f"n{k}" for k in range(9_000)), "a"), "csv")),
    },
    # It is read until it is too much: fewer than 1,000 rows are given.
    "dictionary": {
        "messages": (None, lambda: read(one_long_value(), "parquet")),
        "subscriptions": (None, lambda: rows_of_a_template(one_long_value())),
    },
    "parsed": {
        "in below nots": (
            1,
            lambda: parse(nested({"op": "in", "args": [{"property": "x"}, list(range(120_000))]},
                                 lambda x: {"op": "not", "args": [x]}, 190).decode()),
        ),
        "key twice": ("LanguageError", lambda: parse("{" + "".join(f'"k{k}":1,' for k in range(60_000)) + '"k5":2}')),
        "long and": ("LanguageError", lambda: parse(" AND ".join(f"a{k}=1" for k in range(64_000)))),
        "attributes in one and": ("LimitError", lambda: parse(" AND ".join(f"a{k}=1" for k in range(15_000)))),
    },
    "matched": {
        "attributes": (1, lambda: match((f"a{k} = {k}" for k in range(20_000)), {"a7": 7})),
        "patterns": (1, lambda: match((f"a{k} LIKE '%x_{k}%y'" for k in range(10_000)), {"a7": "x-7-y"})),
        "like of letters": (0, lambda: like("a" * 900_000, "%" + "a" * 4_000 + "b%")),
        "like with holes": (0, lambda: like("a" * 900_000, "%" + "a_" * 2_000 + "b%")),
        "like that matches": (1, lambda: like("a" * 900_000 + "b" + "c" * 1000, "%" + "a_" * 2_000 + "b%")),
        "like of a frequent gram": (0, lambda: like("abcd" * 50_000, *(f"%abcd%x{k}" for k in range(300)))),
        "like implied": (1, lambda: simplify_likes("%" + "a%" * 2_000, "a" * 4_000 + "%b")),
    },
}  # fmt: skip


def peak():
    """The most memory of this process in MB. `ru_maxrss` begins with that of the process that forked it."""
    if not os.path.exists("/proc/self/status"):  # macOS, in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM:"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    for name, (expected, run) in CASES[sys.argv[1]].items():
        print(json.dumps([name, run(), expected, peak()]), flush=True)
