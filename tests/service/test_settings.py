import contextlib
import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from console import python
from contrada.service.links.configured import called_brokers, check_links
from contrada.service.settings import (
    OPTIONS,
    SECTIONS,
    Settings,
    SettingsError,
    load_settings,
    settings_page,
    settings_table,
)
from doc_pages import blocks, commands

PAGE = Path(__file__).parents[2] / "docs" / "serve-settings.md"


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "contrada.toml"
        path.write_text(text)
        return path

    return write


def message(*arguments) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(*arguments)
    return str(caught.value)


def test_nothing_given_means_the_defaults():
    settings = load_settings(None, {}, {})
    assert settings == Settings()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.retention.age == 7 * 24 * 3600
    assert settings.retention.bytes == 1 << 30
    assert settings.limits.body_bytes == 16 << 20
    assert (settings.server.store, settings.server.cors_origins, settings.jwt.enabled) == (None, (), False)
    assert settings.webhooks.allow_private is False


def test_flags_weigh_more_than_variables_and_those_more_than_the_file(file):
    path = file("[server]\nhost = '10.0.0.1'\nport = 1\nstate = 'here'\n[limits]\nqueue = 7\n")
    settings = load_settings(path, {"CONTRADA_SERVER_PORT": "2", "CONTRADA_SERVER_STATE": "there"}, {"port": 3})
    assert (settings.server.host, settings.server.port, settings.server.state) == ("10.0.0.1", 3, Path("there"))
    assert settings.limits.queue == 7


def test_a_flag_that_was_not_given_changes_nothing():
    assert load_settings(None, {"CONTRADA_SERVER_PORT": "2"}, {"port": None, "host": None}).server.port == 2
    given = {"CONTRADA_WEBHOOKS_ALLOW": "10.0.0.0/8, ::1"}
    for absent in ([], (), None):  # what a command line has for an option that can be repeated
        assert load_settings(None, given, {"webhooks_allow": absent}).webhooks.allow == ("10.0.0.0/8", "::1")


def test_an_empty_variable_is_not_set():
    assert load_settings(None, {"CONTRADA_SERVER_PORT": "", "CONTRADA_ADMIN_KEY": ""}) == Settings()


def test_variables_of_others_are_left_alone():
    # Kubernetes sets the first three for a service called contrada.
    others = {
        "CONTRADA_PORT": "tcp://10.0.0.7:8080",
        "CONTRADA_SERVICE_HOST": "10.0.0.7",
        "CONTRADA_PORT_8080_TCP_ADDR": "10.0.0.7",
        "CONTRADA_CACHE_DIR": "/tmp/x",
        "CONTRADA_MAX_NESTING": "3",
        "PATH": "/bin",
    }
    assert load_settings(None, others) == Settings()
    assert load_settings(None, dict(os.environ)) == Settings()


def test_every_setting_can_be_given_in_all_three_ways(file):
    samples = {
        "server.store": "postgresql://u:p@db/contrada",
        "server.cors_origins": ["https://a.example", "http://b.example:81"],
        "server.link": ["wss://north.example:8443", "ws://127.0.0.1:81"],
        "links.keys": ["ctr_a", "ctr_b"],
        "links.expected": ["north", "harbour"],
        "webhooks.allow": ["10.0.0.0/8", "fd00::/8"],
        "webhooks.allow_private": True,
        "map.enabled": False,
        "map.tiles": "https://tiles.example/{z}/{x}/{y}.png",
        "map.coordinates": "plain",
        "map.public_shows": ["filters", "subscribers"],
        "server.log": "nats://host:4222",
        "log.trust": True,
        "server.wrap": ["area=longitude"],
        "telemetry.log_format": "json",
        "telemetry.log_level": "debug",
        "telemetry.otlp_endpoint": "http://localhost:4318",
        "jwt.jwks": "https://id.example/keys",
    }
    together = {"server.tls_cert": ("server.tls_key",), "server.tls_key": ("server.tls_cert",)}
    for name in ("issuer", "audience", "jwks"):
        together[f"jwt.{name}"] = tuple(f"jwt.{other}" for other in ("issuer", "audience", "jwks"))
    by_name = {f"{option.section}.{option.name}": option for option in OPTIONS}

    def sample(option):
        if isinstance(option.default, int | float) and not isinstance(option.default, bool):
            return option.default + 1
        name = f"{option.section}.{option.name}"
        return samples.get(name, 7 if "number" in option.allowed else "something")

    for name, option in by_name.items():
        chosen = {name: option} | {other: by_name[other] for other in together.get(name, ())}
        tables, variables, flags = {}, {}, {}
        for one in chosen.values():
            value = sample(one)
            tables.setdefault(one.section, []).append(f"{one.name} = {msgspec.json.encode(value).decode()}")
            variables[one.variable] = ",".join(value) if isinstance(value, list) else str(value)
            flags[one.parameter] = value
        text = "\n".join(f"[{section}]\n" + "\n".join(lines) for section, lines in tables.items())
        found = [load_settings(file(text)), load_settings(None, variables)]
        found += [] if option.parameter is None else [load_settings(None, {}, flags)]
        values = {getattr(getattr(settings, option.section), option.name) for settings in found}
        assert len(values) == 1, (name, values)
        assert values != {option.default}, name


def test_none_is_a_value_where_it_is_the_default(file):
    path = file("[limits]\nrequests_per_second = 5\n[webhooks]\nattempts = 3\n")
    settings = load_settings(path, {"CONTRADA_LIMITS_REQUESTS_PER_SECOND": "none"}, {"webhooks_attempts": "none"})
    assert (settings.limits.requests_per_second, settings.webhooks.attempts) == (None, None)


def test_the_admin_key_has_a_short_variable_and_no_flag():
    assert load_settings(None, {"CONTRADA_ADMIN_KEY": "abc"}).access.admin_key == "abc"
    assert load_settings(None, {"CONTRADA_ACCESS_ADMIN_KEY": "abc"}).access.admin_key == "abc"
    both = {"CONTRADA_ADMIN_KEY": "abc", "CONTRADA_ACCESS_ADMIN_KEY": "other"}
    assert "CONTRADA_ADMIN_KEY and CONTRADA_ACCESS_ADMIN_KEY" in message(None, both)
    assert load_settings(None, dict.fromkeys(both, "abc")).access.admin_key == "abc"
    assert "--access-admin-key" in message(None, {}, {"access_admin_key": "abc"})


def test_secrets_are_shown_neither_by_repr_nor_by_errors(file):
    secret = "hunter2"
    settings = load_settings(
        None, {"CONTRADA_ADMIN_KEY": secret, "CONTRADA_SERVER_STORE": f"postgresql://u:{secret}@db/x"}
    )
    assert secret not in repr(settings)
    assert secret not in f"{settings}"
    assert "host='127.0.0.1'" in repr(settings)
    assert secret not in message(None, {"CONTRADA_ADMIN_KEY": f"{secret} and more"})
    assert secret not in message(None, {"CONTRADA_SERVER_STORE": f"mysql://u:{secret}@db/x"})
    assert secret not in message(file(f"[server]\nstore = ['{secret}']"))


@pytest.mark.parametrize(
    ("environment", "needed"),
    [
        ({"CONTRADA_SERVER_PORT": "http"}, "CONTRADA_SERVER_PORT='http': need a whole number from 0 to 65,535"),
        ({"CONTRADA_SERVER_PORT": "65536"}, "need a whole number from 0 to 65,535"),
        ({"CONTRADA_SERVER_PORT": "-1"}, "need a whole number from 0 to 65,535"),
        ({"CONTRADA_SERVER_PORT": "none"}, "need a whole number from 0 to 65,535"),
        ({"CONTRADA_SERVER_STATE": "~nobody-has-this-name/state"}, "need a path"),
        ({"CONTRADA_LIMITS_QUEUE": "0"}, "need a whole number from 1 on"),
        ({"CONTRADA_LIMITS_QUEUE": "9" * 5000}, "need a whole number from 1 on"),
        ({"CONTRADA_RETENTION_AGE": "0"}, "need a number above 0"),
        ({"CONTRADA_RETENTION_AGE": "nan"}, "need a number above 0"),
        ({"CONTRADA_RETENTION_AGE": "inf"}, "need a number above 0"),
        ({"CONTRADA_LIMITS_REQUESTS_PER_SECOND": "fast"}, "need a number above 0 or none"),
        ({"CONTRADA_WEBHOOKS_ALLOW_PRIVATE": "maybe"}, "need true or false"),
        ({"CONTRADA_TELEMETRY_LOG_FORMAT": "xml"}, "need json or text"),
        ({"CONTRADA_LIMITS_BODYBYTES": "1"}, "CONTRADA_LIMITS_BODYBYTES: there is no setting 'bodybytes' in limits"),
        ({"CONTRADA_SERVER_": "1"}, "there is no setting '' in server"),
        ({"CONTRADA_SERVER_CORS_ORIGINS": "https://a.example/path"}, "(set by CONTRADA_SERVER_CORS_ORIGINS)"),
        ({"CONTRADA_SERVER_STORE": "mysql://db"}, "need a postgresql:// URL"),
        ({"CONTRADA_SERVER_TLS_CERT": "a.pem"}, "need both files, or neither (set by CONTRADA_SERVER_TLS_CERT)"),
        ({"CONTRADA_WEBHOOKS_ALLOW": "10.0.0.1/8"}, "10.0.0.1/8 has host bits set (set by CONTRADA_WEBHOOKS_ALLOW)"),
        ({"CONTRADA_JWT_ISSUER": "https://id.example"}, "need all three, or none"),
        ({"CONTRADA_ADMIN_KEY": "zwölf"}, "visible ASCII"),
        ({"CONTRADA_TELEMETRY_OTLP_ENDPOINT": "http://["}, "need a URL"),
    ],
)
def test_bad_variables(environment, needed):
    assert needed in message(None, environment)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("[server]\nport = '80'", "contrada.toml: server.port = '80': need a whole number"),
        ("[server]\nport = true", "contrada.toml: server.port = True: need a whole number"),
        ("[server]\nprot = 80", "contrada.toml: [server]: there is no setting 'prot' in server; its settings are host"),
        ("[sever]\nport = 80", "contrada.toml: unknown section [sever]; the sections are server, access"),
        ("port = 80", "unknown section [port]"),
        ("server = 80", "server is a section; write [server]"),
        ("[server\nport", "contrada.toml is not TOML: Expected ']'"),
        ("[retention]\nage = inf", "need a number above 0"),
        ("[server]\ncors_origins = 'https://a.example'", "need a list"),
        ("[server]\nstate = 7", "need a path"),
        ("[server]\nstate = ''", "need a path"),
        ("[server]\nhost = ''", "need text"),
    ],
)
def test_bad_files(file, text, needed):
    assert needed in message(file(text))


def test_files_that_cannot_be_read(tmp_path):
    assert "nowhere.toml cannot be read: No such file" in message(tmp_path / "nowhere.toml")
    assert "cannot be read: Is a directory" in message(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"[server]\nhost = '\xfc'")
    assert "is not TOML" in message(tmp_path / "latin.toml")


def test_bad_flags():
    assert "--port='x': need a whole number from 0 to 65,535" in message(None, {}, {"port": "x"})
    assert "--prot: there is no such setting; the flags are --host, --port" in message(None, {}, {"prot": 1})


@pytest.mark.parametrize("url", ["http://id.example/keys", "ftp://id.example/keys", "https://", "http://[::1", "://x"])
def test_keys_of_a_provider_come_over_https_or_from_a_file(url):
    given = {"jwt_issuer": "https://id.example", "jwt_audience": "contrada"}
    assert "jwt.jwks: need an https:// URL" in message(None, {}, given | {"jwt_jwks": url})
    for good in (
        "https://id.example/keys",
        "http://127.0.0.1:81/keys",
        "http://[::1]/",
        "http://localhost/",
        "keys.json",
    ):
        assert load_settings(None, {}, given | {"jwt_jwks": good}).jwt.enabled


def test_names_of_variables_and_flags_are_those_of_the_sections():
    assert len({option.variable for option in OPTIONS}) == len(OPTIONS)
    flags = [option.flag for option in OPTIONS if option.flag is not None]
    assert len(set(flags)) == len(flags) == len(OPTIONS) - 2  # keys have none
    assert {option.section for option in OPTIONS} == set(SECTIONS)
    (option,) = (option for option in OPTIONS if option.name == "body_bytes")
    assert (option.variable, option.flag) == ("CONTRADA_LIMITS_BODY_BYTES", "--limits-body-bytes")


def test_no_limit_of_one_input_is_taken_for_a_setting():
    # contrada.limits has variables of its own.
    assert not any(option.variable.startswith("CONTRADA_MAX_") for option in OPTIONS)


def test_the_page_of_the_documentation_is_up_to_date():
    assert PAGE.read_text() == settings_page(), "run: python -m contrada.service.settings > docs/serve-settings.md"
    assert python("-m", "contrada.service.settings").stdout == settings_page()
    assert len(re.findall(r"^\| `", settings_table(), re.MULTILINE)) == len(OPTIONS)


def test_an_example_of_the_page_is_a_file_of_settings(file):
    (tables,) = blocks(settings_page(), "toml")
    ((command, _), _) = commands(settings_page())
    example = command.partition("\n")[2].removesuffix("END")
    assert load_settings(file(example)).limits.requests_per_second == 100
    found = load_settings(file(tables))
    assert (found.sinks[0].subscriber, found.sources[0].user) == ("ann", "contrada")


@given(
    st.dictionaries(st.sampled_from([option.variable for option in OPTIONS]), st.text(max_size=30), max_size=4),
    st.dictionaries(
        st.sampled_from([option.parameter or "x" for option in OPTIONS]),
        st.none() | st.text(max_size=9) | st.integers() | st.floats() | st.booleans() | st.lists(st.text(), max_size=2),
        max_size=4,
    ),
)
def test_every_input_is_read_or_refused(environment, flags):
    with contextlib.suppress(SettingsError):
        load_settings(None, environment, flags)


def test_lists_of_variables_and_flags_are_separated_by_commas():
    variable = load_settings(None, {"CONTRADA_WEBHOOKS_ALLOW": "10.1.0.0/16, 127.0.0.0/8"})
    flag = load_settings(None, {}, {"webhooks_allow": "10.1.0.0/16,127.0.0.0/8"})
    assert variable.webhooks.allow == flag.webhooks.allow == ("10.1.0.0/16", "127.0.0.0/8")


@pytest.mark.parametrize("url", ["ws://north.example", "https://north.example", "wss://", "north", "wss://key@north"])
def test_links_are_over_tls_or_to_loopback(url):
    assert "server.link: need wss:// URLs, or ws:// to loopback" in message(None, {}, {"link": url})
    assert load_settings(None, {}, {"link": ["ws://[::1]:80", "wss://a/b"]}).server.link == (
        "ws://[::1]:80",
        "wss://a/b",
    )


def test_links_have_one_key_or_one_each():
    for keys, links in (("", "wss://a"), ("k,l", "wss://a"), ("k,l", "wss://a,wss://b,wss://c")):
        with pytest.raises(SettingsError, match=r"links\.keys: need one key for all links, or one for each"):
            check_links(load_settings(None, {"CONTRADA_LINKS_KEYS": keys}, {"link": links}))
    settings = load_settings(None, {"CONTRADA_LINKS_KEYS": "k,l"}, {"link": "wss://a,wss://b"})
    assert [(one.url, one.key) for one in called_brokers(settings)] == [("wss://a", "k"), ("wss://b", "l")]
    assert "ctr_secret" not in repr(load_settings(None, {"CONTRADA_LINKS_KEYS": "ctr_secret"}))
    with pytest.raises(SettingsError, match=r"links\.ca: cannot read certificates"):
        check_links(load_settings(None, {}, {"links_ca": "nowhere.pem"}))
