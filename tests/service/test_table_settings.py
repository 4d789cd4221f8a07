"""The tables [[sinks]] and [[sources]] of the settings file, and the URLs and passwords in them."""

import contextlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError, FormatError
from contrada.service.remotes import MissingEngineError, RemoteUrl, read_password
from contrada.service.settings import SettingsError, load_settings
from contrada.service.sinks.target import open_sink
from contrada.service.sources.sources import open_source
from contrada.service.table_settings import SinkTable, SourceTable, read_tables

GOOD = {
    "kafka://h/t": RemoteUrl("kafka", (("h", 9092),), "t", False),
    "kafkas://a:1,b:2/x.y_z-1": RemoteUrl("kafka", (("a", 1), ("b", 2)), "x.y_z-1", True),
    "nats://127.0.0.1/a.*.b": RemoteUrl("nats", (("127.0.0.1", 4222),), "a.*.b", False),
    "natss://h/a.>": RemoteUrl("nats", (("h", 4222),), "a.>", True),
    "mqtt://[::1]:18/a/+/b": RemoteUrl("mqtt", (("::1", 18),), "a/+/b", False),
    "mqtts://h//lead/%C3%A4": RemoteUrl("mqtt", (("h", 8883),), "/lead/ä", True),
}
BAD = (
    "", "kafka", "kafka://", "kafka:///t", "kafka://h", "kafka://h/", "kafka://h:0/t", "kafka://h:65536/t", "kafka://h,/t",
    "kafka://h/a/b", "kafka://h/..", "kafka://h/t?x", "kafka://h/t#x", "KAFKA://h/t", "kafka://u@h/t", "nats://h/a..b",
    "nats://h/a b", "nats://h/.a", "mqtt://a,b/t", "mqtt://h/%00", "mqtt://h/%ff", "kafka://h/" + "a" * 250, "ws://h/t",
    "kafka://[::1/t", "kafka://h:1:2/t", "kafka://h\n/t",
)  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_urls(url):
    assert RemoteUrl.parse(url) == GOOD[url]


@pytest.mark.parametrize("url", BAD)
def test_urls_that_are_refused(url):
    with pytest.raises(FormatError, match="need "):
        RemoteUrl.parse(url)


def test_tables_of_a_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        "[server]\nport = 1\n[[sinks]]\nname = 'a'\nurl = 'kafka://h/t'\nsubscriber = 'ann'\nfrom = 'oldest'\n"
        "[[sinks]]\nname = 'b'\nurl = 'nats://h/t'\nsubscriber = 'bob'\ntenant = 'x'\nbatch = 7\n"
        "[[sources]]\nname = 'a'\nurl = 'mqtt://h/t/#'\nformat = 'cap'\npassword_file = 'p'\nuser = 'u'\n"
    )
    settings = load_settings(file)
    assert [(one.name, one.tenant, one.start, one.batch) for one in settings.sinks] == [
        ("a", "default", "oldest", 100),
        ("b", "x", "now", 7),
    ]
    (source,) = settings.sources
    assert (source.reader, source.format, str(source.password_file)) == ("contrada-a", "cap", "p")
    assert load_settings(None).sinks == ()


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("sinks = 1", "sinks is a list of tables; write [[sinks]]"),
        ("[sources]\nname = 'a'", "sources is a list of tables; write [[sources]]"),
        ("[[sinks]]\nname = 'a'\nurl = 'kafka://h/t'", "sinks[0]: Object missing required field `subscriber`"),
        ("[[sources]]\nname = 'a'\nurl = 'kafka://h/t'\nport = 1", "sources[0]: Object contains unknown field `port`"),
        ("[[sources]]\nname = 'a b'\nurl = 'kafka://h/t'", "sources[0]: name: need 1 to 100 letters"),
        ("[[sources]]\nname = 'a'\nurl = 'x'", "sources[0]: url: need a URL such as kafka://host:9092/topic"),
        ("[[sources]]\nname = 'a'\nurl = 'kafka://h/t'\ngroup = ''", "sources[0]: group: need"),
        ("[[sources]]\nname = 'a'\nurl = 'kafka://h/t'\nformat = 'csv'", "sources[0]: Invalid enum value 'csv'"),
        (
            "[[sources]]\nname = 'a'\nurl = 'kafka://h/t'\n" * 2,
            "sources[1]: name: 'a' is taken by another one",
        ),
        (
            "[[sinks]]\nname = 'a'\nurl = 'mqtt://h/t/#'\nsubscriber = 's'",
            "sinks[0]: url: a sink needs a topic without",
        ),
        ("[[sinks]]\nname = 'a'\nurl = 'nats://h/t.>'\nsubscriber = 's'", "sinks[0]: url: a sink needs a"),
        (
            "[[sources]]\nname = 'a'\nurl = 'kafka://h/t'\npassword_env = 'A'\npassword_file = 'b'",
            "sources[0]: password_env and password_file: give one of them",
        ),
    ],
)
def test_tables_that_are_refused(tmp_path, text, needed):
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(file)
    assert f"c.toml: {needed}" in str(caught.value)


def test_no_secret_is_shown(tmp_path, monkeypatch):
    with pytest.raises(FormatError) as caught:
        read_tables(SinkTable, [{"name": "a", "url": "kafka://u:hunter2@h/t", "subscriber": "s"}])
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("A_PASSWORD", "hunter2")
    (sink,) = read_tables(
        SinkTable,
        [{"name": "a", "url": "nats://h/t", "subscriber": "s", "user": "u", "password_env": "A_PASSWORD"}],
    )
    remote = sink.remote()
    assert remote.password == "hunter2"
    assert "hunter2" not in f"{sink!r}{remote!r}{remote}"


def test_passwords_come_from_a_variable_or_a_file(tmp_path):
    file = tmp_path / "password"
    file.write_text("hunter2\r\nmore\n")
    assert read_password(None, file) == "hunter2"
    assert read_password("A", None, {"A": "b"}) == "b"
    assert read_password(None, None) is None
    with pytest.raises(ContradaError, match="variable A is not set"):
        read_password("A", None, {"A": ""})
    with pytest.raises(ContradaError, match=r"password_file: .*nowhere: No such file"):
        read_password(None, tmp_path / "nowhere")
    file.write_bytes(b"\xff")
    with pytest.raises(ContradaError, match="is not UTF-8"):
        read_password(None, file)


@pytest.mark.parametrize(("engine", "package"), [("kafka", "aiokafka"), ("nats", "nats"), ("mqtt", "paho")])
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch, engine, package):
    for name in [name for name in sys.modules if name.startswith("contrada.service") and engine in name]:
        monkeypatch.delitem(sys.modules, name)
    for name in [package, *(name for name in sys.modules if name.split(".")[0] == package)]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingEngineError, match=rf"sink 'a' needs {package}.*; to install it: .*{engine}"):
        open_sink(SinkTable(name="a", url=f"{engine}://h/t", subscriber="s"))
    with pytest.raises(MissingEngineError, match=rf"source 'a' needs {package}"):
        open_source(SourceTable(name="a", url=f"{engine}://h/t"))


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.integers(), max_size=2)
)


@given(
    st.sampled_from([SinkTable, SourceTable]),
    VALUES
    | st.lists(
        st.dictionaries(
            st.sampled_from([*SinkTable.__struct_encode_fields__, "group", "x"]),
            VALUES | st.sampled_from([*GOOD, *BAD]),
            max_size=6,
        )
        | VALUES,
        max_size=3,
    ),
)
def test_every_table_is_read_or_refused(kind, given):
    with contextlib.suppress(FormatError):
        read_tables(kind, given)


@given(
    st.text(max_size=40) | st.builds("{}://{}/{}".format, st.sampled_from(["kafka", "nats", "mqtt"]), *[st.text()] * 2)
)
def test_every_url_is_read_or_refused(url):
    with contextlib.suppress(FormatError):
        RemoteUrl.parse(url)
