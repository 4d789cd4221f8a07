"""`contrada match`: all formats in and out, bad rows, pipes, exit codes."""

import contextlib
import csv
import io
import json
import os
import pty
import signal
import subprocess
import time
from functools import partial

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import shapely
from commands import start

from console import collection, contrada, feature, ndjson, python, read_lines, wait_for, without_compiling, write_lines
from contrada.cli.rejections import MAX_PENDING_LINES

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
FAR = {"type": "Polygon", "coordinates": [[[9, 9], [10, 9], [10, 10], [9, 9]]]}
MESSAGES = [
    {"id": "a", "severity": 4, "area": SQUARE},
    {"id": "b", "severity": 2, "area": {"type": "Point", "coordinates": [1.5, 1.2]}},
    {"id": "c", "severity": 5},
    {"id": "d", "severity": 1, "area": FAR},
]
SUBSCRIPTIONS = [
    {"key": "severe", "subscriber": "ops", "filter": "severity >= 4"},
    {"key": 2, "subscriber": "harbour", "filter": "S_INTERSECTS(area, POLYGON((1 1, 2 1, 2 2, 1 1)))"},
    {"key": "any", "subscriber": "ops", "filter": "severity IS NOT NULL AND area IS NOT NULL"},
]
MATCHES = [
    ("a", "ops", "severe"), ("a", "harbour", 2), ("a", "ops", "any"), ("b", "harbour", 2), ("b", "ops", "any"),
    ("c", "ops", "severe"), ("d", "ops", "any"),
]  # fmt: skip
TEMPLATE = "S_INTERSECTS(area, $geometry) AND severity >= $least"


run = partial(contrada, "match")


def matches(result, *, code=0):
    """The matches that were printed, after a look at the exit code."""
    assert result.exit_code == code, result.output
    return [tuple(row.values()) for row in read_lines(result.stdout)]


def wkb(geometry):
    return shapely.to_wkb(shapely.geometry.shape(geometry))


@pytest.fixture
def files(tmp_path):
    """A message file and a subscription file."""
    return write_lines(tmp_path / "m.ndjson", MESSAGES), write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)


def test_matches_are_printed_in_order_and_summed_up_on_standard_error(files, tmp_path):
    result = run(*files)
    assert matches(result) == MATCHES
    assert list(read_lines(result.stdout)[0]) == ["message", "subscriber", "key"]
    assert "messages:      4\n" in result.stderr
    assert "subscriptions: 3\n" in result.stderr
    assert "matches:       7, for 4 of the messages\n" in result.stderr
    assert "messages/s" in result.stderr
    assert without_compiling(run(*files, "--quiet").stderr) == ""
    assert "\x1b[" not in run(*files, "-o", tmp_path / "o.ndjson").stderr, "no progress bar in a pipe"


def test_many_batches(files):
    times = 1500  # a batch has 2048 messages
    write_lines(files[0], MESSAGES * times)
    assert matches(run(*files)) == MATCHES * times
    by_subscriber = [("a", "ops"), ("a", "harbour"), ("b", "ops"), ("b", "harbour"), ("c", "ops"), ("d", "ops")]
    assert matches(run(*files, "--by", "subscriber")) == by_subscriber * times


def write_messages(path, form):
    """The messages in one of the formats; those with a geometry column call it `geometry`."""
    rows = pa.Table.from_pylist([{"id": row["id"], "severity": row["severity"]} for row in MESSAGES])
    shapes = [shapely.geometry.shape(row["area"]) if "area" in row else None for row in MESSAGES]
    if form == "json":
        path.write_text(json.dumps(MESSAGES))
    elif form == "geojson":
        path.write_text(
            collection(feature(row.get("area"), id=row["id"], severity=row["severity"]) for row in MESSAGES)
        )
    elif form == "geojsons":
        path.write_text("".join("\x1e" + json.dumps(message, indent=1) + "\n" for message in MESSAGES))
    elif form == "csv":
        pacsv.write_csv(rows.append_column("geometry", pa.array(shapely.to_wkt(shapes))), path)
    else:
        table = rows.append_column("area", pa.array(shapely.to_wkb(shapes), pa.binary()))
        if form == "parquet":
            pq.write_table(table, path)
        else:
            make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
            with make(path, table.schema) as writer:
                writer.write_table(table)


@pytest.mark.parametrize("form", ["json", "geojson", "geojsons", "csv", "parquet", "arrow", "arrows"])
def test_formats_in(tmp_path, form):
    messages = tmp_path / f"m.{form}"
    write_messages(messages, form)
    attribute = "geometry" if form in ("csv", "geojson") else "area"
    asked = [{**one, "filter": one["filter"].replace("area", attribute)} for one in SUBSCRIPTIONS]
    subscriptions = write_lines(tmp_path / "s.ndjson", asked)
    assert matches(run(messages, subscriptions)) == MATCHES
    told = ["--messages-format", "csv"] if form == "csv" else []  # whose format nothing tells
    assert matches(run("-", subscriptions, *told, input=messages.read_bytes())) == MATCHES


def test_alerts_and_zones(tmp_path):
    areas = ["<polygon>0,0 0,4 4,4 4,0 0,0</polygon>", "<geocode><valueName>Z</valueName><value>7</value></geocode>"]
    (tmp_path / "alerts").mkdir()
    for k, area in enumerate(areas):
        (tmp_path / "alerts" / f"{k}.xml").write_text(f"""<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
            <identifier>alert {k}</identifier><sender>s</sender><sent>2024-05-01T12:00:00-00:00</sent>
            <status>Actual</status><msgType>Alert</msgType><scope>Public</scope><info><category>Met</category>
            <event>Storm</event><urgency>Immediate</urgency><severity>Severe</severity><certainty>Likely</certainty>
            <area><areaDesc>A field</areaDesc>{area}</area></info></alert>""")
    zones = write_lines(tmp_path / "zones.ndjson", [{"valueName": "Z", "value": "7", "geometry": SQUARE}])
    asked = [{"key": 1, "filter": "S_INTERSECTS(area, POINT(1 1))"}]
    both = (tmp_path / "alerts", write_lines(tmp_path / "s.ndjson", asked))
    without = run(*both, "--reject", tmp_path / "bad.ndjson")
    assert matches(without) == [("alert 0", 1, 1)]
    (lost,) = read_lines(tmp_path / "bad.ndjson")
    assert lost["what"] == "part of a message"
    assert "Z=7" in lost["reason"]
    assert "messages:      2\n" in without.stderr, "it is a message all the same"
    assert matches(run(*both, "--zones", zones)) == [("alert 0", 1, 1), ("alert 1", 1, 1)]


def columns(table):
    return [tuple(table.column_names), *(tuple(row.values()) for row in table.to_pylist())]


READERS = {
    "ndjson": lambda data: [tuple(row.values()) for row in read_lines(data.decode())],
    "csv": lambda data: [tuple(row) for row in csv.reader(io.StringIO(data.decode()))],
    "parquet": lambda data: columns(pq.read_table(pa.BufferReader(data))),
    "arrow": lambda data: columns(pa.ipc.open_stream(data).read_all()),
}


@pytest.mark.parametrize("form", READERS)
def test_formats_out(files, tmp_path, form):
    """What was found, or nothing, under names of columns; names that are numbers and texts become texts in columns."""
    read, output = READERS[form], tmp_path / f"out.{form}"
    head = [] if form == "ndjson" else [("message", "subscriber", "key")]
    expected = MATCHES if form == "ndjson" else head + [tuple(map(str, match)) for match in MATCHES]
    run(*files, "--output", output, code=0)
    assert read(output.read_bytes()) == expected, "the suffix tells"
    assert read(run(*files, "--format", form).stdout_bytes) == expected
    run("-", files[1], "-o", output, input='{"severity": 0}', code=0)
    assert read(output.read_bytes()) == head, "no match is a good answer"


def test_integers_stay_integers_in_columns(tmp_path):
    write_lines(tmp_path / "s.ndjson", [{"key": 7, "filter": "x = 1"}])
    run("-", tmp_path / "s.ndjson", "-o", tmp_path / "o.parquet", input='{"x": 1}', code=0)
    assert pq.read_table(tmp_path / "o.parquet").to_pylist() == [{"message": "1", "subscriber": 7, "key": 7}]


def test_hard_names_survive(tmp_path):
    name = 'a "quoted", name\n\u00e9\U0001f30a'
    write_lines(tmp_path / "s.ndjson", [{"key": name, "filter": "x = 1"}])
    message = json.dumps({"x": 1, "id": name})
    assert matches(run("-", tmp_path / "s.ndjson", input=message)) == [(name, name, name)]
    result = run("-", tmp_path / "s.ndjson", "-f", "csv", input=message)
    assert list(csv.reader(io.StringIO(result.stdout)))[1] == [name] * 3


def test_what_identifies_a_message(files, tmp_path):
    rows = [
        {"severity": 9}, {"id": 7, "severity": 9}, {"identifier": "x", "severity": 9},
        {"id": True, "severity": 9, "n": 1.5},
        {"specversion": "1.0", "id": "e", "source": "/s", "type": "t", "data": {"severity": 9}},
    ]  # fmt: skip
    assert [one[0] for one in matches(run("-", files[1], input=ndjson(rows)))] == [1, 7, "x", 4, "e"]
    result = run("-", files[1], "--id", "n", "--reject", tmp_path / "bad", input=ndjson(rows))
    assert [one[0] for one in matches(result)] == ["1.5"]
    bad = read_lines(tmp_path / "bad")
    assert [one["line"] for one in bad] == [1, 2, 3, 5]
    assert {one["reason"] for one in bad} == {"need attribute 'n' to identify the message"}


def test_rows_without_an_identifier_are_rejected_and_numbers_of_several_files_name_the_file(files, tmp_path):
    pq.write_table(pa.table({"severity": [9, 9, 9], "name": ["x", None, "z"]}), tmp_path / "m.parquet")
    assert [one[0] for one in matches(run(tmp_path / "m.parquet", files[1]))] == [0, 1, 2]
    result = run(tmp_path / "m.parquet", files[1], "--id", "name", "--reject", tmp_path / "bad")
    assert [one[0] for one in matches(result)] == ["x", "z"]
    assert json.loads((tmp_path / "bad").read_text())["row"] == 1
    assert "messages:      2, and 1 rejected" in result.stderr
    for name in ("a.ndjson", "b.ndjson"):
        write_lines(tmp_path / "in" / name, [{"severity": 9}])
    assert [one[0] for one in matches(run(tmp_path / "in", files[1]))] == ["a.ndjson:1", "b.ndjson:1"]


def test_bad_rows_are_kept_and_the_rest_go_through(files, tmp_path):
    bow_tie = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}
    lines = [json.dumps(MESSAGES[0]), "{", json.dumps({"area": bow_tie}), json.dumps(MESSAGES[2])]
    bad_subscriptions = [{"key": "x", "filter": "severity >="}, {"key": "severe", "filter": "severity > 1"}]
    write_lines(files[1], [*SUBSCRIPTIONS, *bad_subscriptions])
    result = run("-", files[1], "--reject", tmp_path / "bad.ndjson", input="\n".join(lines))
    assert matches(result) == [match for match in MATCHES if match[0] in "ac"]
    kept = read_lines(tmp_path / "bad.ndjson")
    assert [(row["what"], row["source"], row["line"]) for row in kept] == [
        *(("subscription", str(files[1]), line) for line in (4, 5)),
        *(("message", "standard input", line) for line in (2, 3)),
    ]
    assert [row["raw"] for row in kept[2:]] == lines[1:3]
    assert "already exists" in kept[1]["reason"]
    assert "messages:      2, and 2 rejected" in result.stderr
    assert "subscriptions: 3, and 2 rejected" in result.stderr
    assert "column 12: unexpected end of text" in result.stderr
    assert str(tmp_path / "bad.ndjson") in result.stderr


def test_exit_codes(files):
    one_bad = '{"severity": 9}\n{'
    run("-", files[1], input=one_bad, code=0)
    run("-", files[1], "--strict", input=one_bad, code=1)
    run("-", files[1], "--strict", input='{"severity": 9}', code=0)
    run("-", files[1], input="{\n{", code=1)  # nothing came but what is bad
    run("-", files[1], input="", code=0)
    assert run(*files, "--to-crs", "EPSG:1").exit_code in (1, 2)


def test_errors_are_a_line_and_no_traceback(files, tmp_path):
    for arguments in (
        ("-", "-"), (*files, "--buffer", -1), (*files, "--template", "x >"), (*files, "--messages-format", "dbf"),
        (*files, "--explain", "sever"), (*files, "--key", "id"), (*files, "--output", tmp_path / "no" / "file"),
    ):  # fmt: skip
        result = run(*arguments, code=2)
        assert isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output
    assert "did you mean severe?" in run(*files, "--explain", "sever").stderr


@pytest.mark.parametrize("option", ["--output", "--reject"])
def test_what_is_read_is_not_written_over(files, option):
    for path in files:
        before = path.read_text()
        run(*files, option, path, code=2)
        assert path.read_text() == before


def test_a_file_without_a_good_subscription_or_message_is_an_error(files, tmp_path):
    regions = write_lines(tmp_path / "bad.ndjson", [feature(SQUARE)])
    assert "needs a template" in run(files[0], regions, code=2).stderr
    write_messages(tmp_path / "m.parquet", "parquet")
    whole = (tmp_path / "m.parquet").read_bytes()
    (tmp_path / "m.parquet").write_bytes(whole[:-5])
    assert "cannot be read from here on" in run(tmp_path / "m.parquet", files[1], code=1).stderr


def test_many_reasons_are_bounded(files):
    lines = ["[" + "1," * k + "}" for k in range(1100)]
    result = run("-", files[1], input="\n".join(['{"severity": 9}', *lines]))
    assert f"{len(lines):,} rejected" in result.stderr
    assert "  100 x message: other reasons (first: " in result.stderr


FACILITIES = [
    {**feature({"type": "Point", "coordinates": [5, 2]}, least=3, name="north"), "id": "n"},
    {**feature({"type": "Point", "coordinates": [1, 1]}, least=9, name="south"), "id": "s"},
    {**feature({"type": "Point", "coordinates": [1, 1]}, name="no number"), "id": "x"},
]


def test_a_template_with_a_buffer(files, tmp_path):
    facilities = tmp_path / "facilities.geojson"
    facilities.write_text(collection(FACILITIES))
    asked = ("--template", TEMPLATE, "--key", "id", "--subscriber", "name", "--subscriptions-crs", "none")
    assert matches(run(files[0], facilities, *asked)) == []
    result = run(files[0], facilities, *asked, "--buffer", 1.5)
    assert matches(result) == [("a", "north", "n")]
    assert "column 'least': no value" in result.stderr
    assert matches(run(files[0], facilities, *asked, "--buffer", 1.5, "--buffer-of", "messages")) == []


def test_a_template_with_several_filters_over_parquet(files, tmp_path):
    rows = {"key": ["p", "q"], "geometry": [wkb(SQUARE), wkb(FAR)], "least": [3, 5]}
    pq.write_table(pa.table(rows), tmp_path / "s.parquet")
    asked = "S_INTERSECTS(area, $geometry) AND severity >= 2 OR severity >= $least"
    expected = [("a", "p", "p"), ("b", "p", "p"), ("c", "p", "p"), ("c", "q", "q")]
    assert matches(run(files[0], tmp_path / "s.parquet", "--template", asked)) == expected


def test_reprojection(tmp_path):
    siena = feature({"type": "Point", "coordinates": [11.33, 43.32]}, id="siena")
    near = feature({"type": "Point", "coordinates": [11.34, 43.32]})  # some 800 m to the east
    (tmp_path / "m.geojson").write_text(collection([siena]))
    (tmp_path / "s.geojson").write_text(collection([near]))
    asked = (tmp_path / "m.geojson", tmp_path / "s.geojson", "--template", "S_INTERSECTS(geometry, $geometry)")
    for metres, found in ((500, []), (900, [("siena", 0, 0)])):
        there = ("--to-crs", "EPSG:32632", "--buffer", metres, "--buffer-of", "subscriptions")
        assert matches(run(*asked, *there)) == found
    assert "degrees" in run(*asked, "--buffer", 500, code=2).stderr


def test_systems_that_differ_are_named(tmp_path):
    (tmp_path / "s.geojson").write_text(json.dumps(feature(SQUARE)))
    asked = (tmp_path / "s.geojson", "--template", "S_INTERSECTS(geometry, $geometry)")
    differing = run("-", *asked, "--crs", "EPSG:3857", input=json.dumps(feature(FAR)), code=1)
    assert "OGC:CRS84 and EPSG:3857" in differing.stderr
    about = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": "EPSG:3857"}'}
    field = pa.field("geometry", pa.binary(), metadata=about)
    pq.write_table(pa.table([[wkb(FAR)]], schema=pa.schema([field])), tmp_path / "m.parquet")
    assert "OGC:CRS84 and EPSG:3857" in run(tmp_path / "m.parquet", *asked, code=1).stderr


def test_times(tmp_path):
    write_lines(tmp_path / "s.ndjson", [{"key": 1, "filter": "onset > TIMESTAMP('2024-05-01T10:00:00Z')"}])
    messages = ndjson([{"onset": "2024-05-01T12:30:00+02:00"}, {"onset": "2024-05-01T11:30:00+02:00"}, {"onset": "x"}])
    assert matches(run("-", tmp_path / "s.ndjson", input=messages)) == []
    result = run("-", tmp_path / "s.ndjson", "--times", "onset, expires", input=messages)
    assert matches(result) == [(1, 1, 1)]
    assert "1 rejected" in result.stderr


def test_explain(files):
    parts = run(*files, "--explain", "2", code=0).stdout.split("\n\n")
    assert parts[0].startswith(f"message a ({files[0]}, line 1)\n2 of 'harbour' matches.\n")
    assert "area is absent" in parts[2]
    assert [part.split()[1] for part in parts if part] == list("abcd")
    assert run(*files, "--explain", "2", "--limit", 2).stdout.count("message ") == 2
    assert run(*files, "--explain", "2", "--limit", 0).stdout.count("message ") == 4
    rows = read_lines(run(*files, "--explain", "severe", "-f", "ndjson").stdout)
    assert [(row["message"], row["truth"]) for row in rows] == [("a", True), ("b", False), ("c", True), ("d", False)]


def test_explain_agrees_with_matches(files, tmp_path):
    write_messages(tmp_path / "m.parquet", "parquet")
    for one in SUBSCRIPTIONS:
        rows = read_lines(run(tmp_path / "m.parquet", files[1], "--explain", one["key"], "-f", "ndjson").stdout)
        true = [row["message"] for row in rows if row["truth"]]
        assert true == [match[0] for match in MATCHES if match[2] == one["key"]]


@pytest.mark.parametrize(
    ("command", "words"),
    [("match", ["--explain", "--reject", "--to-crs", "--buffer", "tail -f"]), ("check", ["S_CONTAINS"])],
)
def test_help_teaches(command, words):
    text = contrada(command, "--help").stdout
    assert text.count(f"contrada {command} ") >= 3, "examples"
    for word in ("Exit codes", *words):
        assert word in text


# Real processes


@pytest.fixture
def live(files, tmp_path):
    """The command as a process that reads a pipe, has answered a message, and keeps bad rows in bad.ndjson."""
    arguments = ["match", "-", files[1], "--reject", tmp_path / "bad.ndjson"]
    with start("-m", "contrada.cli.main", *arguments, stdin=subprocess.PIPE, text=False) as process:
        send(process, b'{"id": "x", "severity": 9}\n')
        assert json.loads(process.stdout.readline())["message"] == "x"
        yield process


def send(process, lines):
    process.stdin.write(lines)
    process.stdin.flush()


def test_answers_and_rejections_come_before_the_input_ends(live, tmp_path):
    bad = tmp_path / "bad.ndjson"
    bursts = (1, 3, 2 * MAX_PENDING_LINES + 1)
    send(live, b'{"id": "y", "severity": 9}\n')
    assert json.loads(live.stdout.readline())["message"] == "y"
    for number, burst in enumerate(bursts):
        send(live, b"no JSON\n" * burst)
        count = sum(bursts[: number + 1])
        wait_for(lambda count=count: bad.exists() and len(bad.read_bytes().splitlines()) >= count, 60)
    live.stdin.close()
    assert live.wait(60) == 0
    assert b"messages:      2, and " in live.stderr.read()
    assert live.stdout.read() == b""
    lines = [row["line"] for row in read_lines(bad) if row["what"] == "message"]
    assert lines == list(range(3, 3 + sum(bursts)))


def test_interrupted_live_it_still_sums_up(live):
    time.sleep(0.2)
    live.send_signal(signal.SIGINT)
    assert live.wait(60) == 130
    errors = live.stderr.read()
    assert b"matches:       1" in errors
    assert b"Traceback" not in errors


def test_a_pipe_that_is_closed_ends_it_quietly(live):
    live.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        for _ in range(50):
            send(live, b'{"severity": 9}\n' * 1000)
        live.stdin.close()
    assert live.wait(60) == 141
    assert without_compiling(live.stderr.read().decode()) == ""


def test_a_progress_bar_on_a_terminal(files, tmp_path):
    master, slave = pty.openpty()
    command = ["-m", "contrada.cli.main", "match", *files, "-o", tmp_path / "o.ndjson"]
    with start(*command, stderr=slave, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # how the other end of a terminal tells that it is closed
            while piece := os.read(master, 1 << 16):
                shown += piece
        assert process.wait(60) == 0
    os.close(master)
    assert b"\x1b[" in shown
    assert b"matches:" in shown
    assert (tmp_path / "o.ndjson").read_text().count("\n") == len(MATCHES)


def test_completion():
    without_detection = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = python("-m", "contrada.cli.main", "--show-completion", "bash", env=without_detection)
    assert "complete" in shown.stdout
