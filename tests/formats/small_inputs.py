"""Inputs below 1 MB that once took gigabytes or minutes. `python small_inputs.py A B` runs some, a line for each."""

import io
import json
import math
import os
import resource
import sys
import time

NAMESPACE = "urn:oasis:names:tc:emergency:cap:1.2"
ALERT = """<alert xmlns="%s"><identifier>7</identifier><sender>s</sender><sent>2024-05-01T12:00:00-00:00</sent>
<status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info><category>Met</category><event>Storm</event>
<urgency>Immediate</urgency><severity>Severe</severity><certainty>Likely</certainty>
<area><areaDesc>x</areaDesc>%s</area></info></alert>"""


def read(data, format, **options):
    from contrada.formats.reading import read_messages
    from contrada.formats.records import Rejected

    assert len(data) < 1 << 20
    counts = {True: 0, False: 0}
    for item in read_messages(io.BytesIO(data), format, **options):
        counts[isinstance(item, Rejected)] += 1
    return [counts[False], counts[True]]


def crs_of_a_collection(member='{"x":"%s"}', feature='{"type":"Feature","geometry":null}', count=20_000):
    features = ",".join([feature] * count)
    text = '{"type":"FeatureCollection","crs":' + member % ("y" * 300_000) + ',"features":[' + features + "]}"
    return read(text.encode(), "json")


def long_crs_name():
    return crs_of_a_collection('{"type":"name","properties":{"name":"%s"}}')


def long_xml_namespace():
    return read(b'<alert xmlns="' + b"n" * 100_000 + b'">' + b"<a/>" * 64_000 + b"</alert>", "cap")


def allowed_xml_namespace():
    return read(b'<alert xmlns="' + b"n" * 4_000 + b'">' + b"<a/>" * 200_000 + b"</alert>", "cap")


def equal_geocodes():
    from contrada.geometry import Region

    turns = [2 * math.pi * k / 20_000 for k in range(20_000)]
    zones = {("U", "1"): Region([(math.cos(turn), math.sin(turn)) for turn in turns], crs="OGC:CRS84")}
    codes = "<geocode><valueName>U</valueName><value>1</value></geocode>" * 14_000
    return read((ALERT % (NAMESPACE, codes)).encode(), "cap", zones=zones)


def equal_circles():
    return read((ALERT % (NAMESPACE, "<circle>10,10 5</circle>" * 8_000)).encode(), "cap")


def nearly_equal_circles():
    circles = "".join(f"<circle>10.{k:07d},10 5</circle>" for k in range(8_000))
    return read((ALERT % (NAMESPACE, circles)).encode(), "cap")


def many_bad_blocks():
    text = ALERT % (NAMESPACE, "<polygon>1,1</polygon>")
    start, stop = text.index("<info>"), text.index("</alert>")
    return read((text[:start] + text[start:stop] * 3_000 + "</alert>").encode(), "cap")


def deep_names():
    inner = {f"k{k}": 1 for k in range(40_000)}
    for _ in range(60):
        inner = {"n" * 1_500: inner}
    return read(json.dumps(inner).encode(), "ndjson")


def many_names():
    return read(json.dumps({f"k{k}": 1 for k in range(60_000)}).encode(), "ndjson")


def parquet(text, rows, **options):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    piece = pa.table({"a": pa.array([text] * 100)})
    with pq.ParquetWriter(file, piece.schema, compression="zstd", **options) as writer:
        for _ in range(rows // 100):
            writer.write_table(piece)
    return file.getvalue()


def one_long_value():
    """A dictionary of one value in one row group: a column chunk of 500 KB that says 8,192 rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * 8192, pa.int32()), ["x" * 500_000])
    pq.write_table(pa.table({"a": codes}), file, compression="zstd", store_schema=False)
    return file.getvalue()


def parquet_dictionary():
    return read(one_long_value(), "parquet")


def parquet_dictionary_of_subscriptions():
    import tempfile

    from contrada.cql2 import parse
    from contrada.formats.subscriptions import read_subscription_table

    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(one_long_value())
        file.flush()
        found = read_subscription_table(file.name, parse("a = $a"))
    return [found.table.num_rows, len(found.rejected)]


def parquet_pages():
    return read(parquet("x" * 500_000, 4_000, use_dictionary=False), "parquet")


def parquet_of_nothing():
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"a": pa.nulls(100_000_000)}), file)
    return read(file.getvalue(), "parquet")


def csv_header():
    row = ",".join(f"n{k}" for k in range(32_000))
    return read(f"{row}\n{row}\n".encode(), "csv")


def csv_header_twice():
    row = ",".join(["a", *(f"n{k}" for k in range(9_000)), "a"])
    return read(f"{row}\n{row}\n".encode(), "csv")


def refused(text):
    import contrada as ct
    from contrada.cql2 import parse

    assert len(text) < 1 << 20
    try:
        return len(parse(text))
    except ct.ContradaError as error:
        return type(error).__name__ if len(str(error)) < 1000 else "a long message"


def in_below_nots():
    value = {"op": "in", "args": [{"property": "x"}, list(range(120_000))]}
    for _ in range(190):
        value = {"op": "not", "args": [value]}
    return refused(json.dumps(value))


def repeated_key():
    return refused("{" + ",".join(f'"k{k}":1' for k in range(60_000)) + ',"k59999":2}')


def one_long_and():
    return refused(" AND ".join(f"a{k}=1" for k in range(64_000)))


def many_attributes_in_one_and():
    return refused(" AND ".join(f"a{k}=1" for k in range(15_000)))


def matching(filters, message):
    import contrada as ct

    table = ct.ForwardingTable()
    for key, asked in enumerate(filters):
        table.subscribe(key, asked)
    before = len(table.match(message))
    table.pack()
    assert len(table.match(message)) == before
    return before


def many_attributes():
    return matching((f"a{k} = {k}" for k in range(20_000)), {"a7": 7})


def many_patterns():
    return matching((f"a{k} LIKE '%x_{k}%y'" for k in range(10_000)), {"a7": "x-7-y"})


def like(pattern, text):
    import contrada as ct

    return matching([ct.Constraint("t", "like", pattern)], {"t": text})


def like_of_letters():
    return like("%" + "a" * 4_000 + "b%", "a" * 900_000)


def like_with_holes():
    return like("%" + "a_" * 2_000 + "b%", "a" * 900_000)


def like_that_matches():
    return like("%" + "a_" * 2_000 + "b%", "a" * 900_000 + "b" + "c" * 1000)


def like_of_a_frequent_gram():
    import contrada as ct

    return matching([ct.Constraint("t", "like", f"%abcd%x{k}") for k in range(300)], {"t": "abcd" * 50_000})


def like_implied():
    import contrada as ct

    wide, narrow = "%" + "a%" * 2_000, "a" * 4_000 + "%b"
    asked = ct.Predicate([ct.Filter([ct.Constraint("t", "like", pattern)]) for pattern in (wide, narrow)])
    return len(ct.simplify(asked))


def peak():
    """The most memory of this process in MB. `ru_maxrss` begins with that of the process that forked it."""
    if not os.path.exists("/proc/self/status"):  # macOS, in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM:"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    for name in sys.argv[1:]:
        began = time.process_time()
        outcome = globals()[name]()
        print(json.dumps([name, outcome, peak(), round(time.process_time() - began, 1)]), flush=True)
