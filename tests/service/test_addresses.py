import asyncio
import errno
import ipaddress
import socket
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.service.access.addresses import AddressPolicy, RefusedAddressError
from contrada.service.problems import Problem

IPV4 = st.integers(0, (1 << 32) - 1).map(ipaddress.IPv4Address)
IPV6 = st.integers(0, (1 << 128) - 1).map(ipaddress.IPv6Address)
GLOBAL_IPV6 = st.integers(1 << 125, (1 << 126) - 1).map(ipaddress.IPv6Address)


def refused_url(url, policy=None) -> str:
    with pytest.raises(Problem) as caught:
        (policy or AddressPolicy()).check_url(url)
    assert (caught.value.status, caught.value.type) == (400, "/problems/bad-webhook")
    return caught.value.detail


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.1", "shared"),
        ("100.100.100.200", "metadata"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.169.254", "link-local"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("198.19.0.1", "benchmarking"),
        ("203.0.113.9", "documentation"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("168.63.129.16", "metadata"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b::808:808", "NAT64"),
        ("64:ff9b:1::1", "NAT64"),
        ("100::1", "reserved"),
        ("2001::1", "Teredo"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::", "6to4"),
        ("2002:808:808::1", "6to4"),
        ("fc00::1", "private"),
        ("fd00:ec2::254", "metadata"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "scoped"),
        ("2606:4700::1%1", "scoped"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("4000::1", "reserved"),
        ("localhost", "not an address"),
        ("2130706433", "not an address"),
        ("0177.0.0.1", "not an address"),
        ("127.1", "not an address"),
        ("", "not an address"),
        ("93.184.216.34", None),
        ("8.8.8.8", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("2606:4700::1111", None),
    ],
)
def test_kinds_of_addresses(address, kind):
    assert AddressPolicy().refusal(address) == kind


@given(IPV4 | IPV6 | GLOBAL_IPV6)
@example(ipaddress.ip_address("192.0.0.9"))
def test_what_is_allowed_is_global_to_python_too(address):
    if AddressPolicy().refusal(str(address)) is None:
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


@given(IPV4)
def test_ipv6_addresses_that_hold_an_ipv4_address_are_refused(address):
    number = int(address)
    for held in (
        0xFFFF << 32 | number,
        0x64FF9B << 96 | number,
        0x2002 << 112 | number << 80,
        0x20010000 << 96 | number,
    ):
        assert AddressPolicy().refusal(str(ipaddress.IPv6Address(held))) is not None


def test_private_addresses_can_be_allowed_and_link_local_ones_stay_refused():
    policy = AddressPolicy(allow_private=True)
    allowed = ("10.0.0.1", "127.0.0.1", "192.168.0.1", "100.64.0.1", "::1", "fd00::1", "8.8.8.8")
    assert [policy.refusal(address) for address in allowed] == [None] * len(allowed)
    refused = ("169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "100.100.100.200", "fd00:ec2::254")
    assert None not in [policy.refusal(address) for address in refused]
    assert policy.refusal("::ffff:10.0.0.1") == "IPv4-mapped"


def test_networks_can_be_allowed_one_by_one():
    policy = AddressPolicy(allow=["10.1.0.0/16", "169.254.7.7/32", "fd00::/8"])
    assert [policy.refusal(address) for address in ("10.1.255.1", "169.254.7.7", "fd12::1", "8.8.8.8")] == [None] * 4
    assert [policy.refusal(address) for address in ("10.2.0.1", "169.254.7.8", "fc00::1")] == [
        "private",
        "link-local",
        "private",
    ]
    assert policy.refusal("::ffff:10.1.0.1") == "IPv4-mapped"


def spellings(address: ipaddress.IPv4Address):
    a, b, c, d = address.packed
    number = int(address)
    yield from (f"{number}", f"0x{number:x}", f"0X{number:X}", f"0{number:o}", f"{a}.{number & 0xFFFFFF}")
    yield from (f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a}.{b}.{number & 0xFFFF}")
    yield from (f"{a}.{b}.{c}.{d}.", f"0{a}.{b}.{c}.{d}", f"%3{a % 10}.{b}.{c}.{d}", f"0x{a:x}.{b}.{c}.0{d:o}")


@given(IPV4)
def test_other_spellings_of_an_address_are_refused(address):
    for host in spellings(address):
        refused_url(f"http://{host}/hook")
        refused_url(f"http://{host}/hook", AddressPolicy(allow_private=True))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "https://10.0.0.1:8443/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fe80::1%25eth0]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost:81/",
        "http://user@example.org/",
        "http://user:password@example.org/",
        "http://example.org@127.0.0.1/",
        "http://127.0.0.1\\@example.org/",
        "http://exa mple.org/",
        "http://example.org/\r\nHost: other",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://1\u2488\u20dd.0.0.1/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org:x/",
        "http:///path",
        "http://",
        "//example.org/",
        "example.org",
        "",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "javascript:alert(1)",
        "unix:///run/docker.sock",
        "http://[::1",
        "http://example.org/" + "x" * 3000,
    ],
)
def test_urls_that_are_refused(url):
    assert refused_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/hook",
        "https://example.org:8443/a/b?c=d%20e#f",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]/",
        "https://xn--bcher-kva.example/",
        "https://4.example/",
        "https://0x7f.example/",
    ],
)
def test_urls_that_are_taken(url):
    assert AddressPolicy().check_url(url).host


def test_localhost_is_taken_where_loopback_is_allowed():
    for policy in (
        AddressPolicy(allow_private=True),
        AddressPolicy(allow=["127.0.0.0/8"]),
        AddressPolicy(allow=["::1"]),
    ):
        assert policy.check_url("http://localhost:9000/hook").port == 9000
    assert "loopback" in refused_url("http://localhost/", AddressPolicy(allow=["10.0.0.0/8"]))


@given(st.text(st.characters(exclude_categories=())) | st.from_regex(r"https?://[\[\]:.@%/\\0-9a-fx]{0,30}"))
def test_every_url_is_taken_or_refused(url):
    try:
        parsed = AddressPolicy().check_url(url)
    except Problem as problem:
        assert problem.body()  # noqa: PT017
    else:
        assert parsed.scheme in ("http", "https")


def test_a_socket_is_made_for_an_allowed_address_only():
    policy = AddressPolicy(allow=["127.0.0.1/32"])
    info = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    policy.open_socket((*info, ("127.0.0.1", 80))).close()
    for host in ("127.0.0.2", "localhost", "0x7f.1", ""):
        with pytest.raises(RefusedAddressError, match="webhooks may not call") as caught:
            policy.open_socket((*info, (host, 80)))
        assert caught.value.errno == errno.EACCES


class ChangingResolver(AbstractResolver):
    """A resolver whose answers change: each question takes the next list of addresses, and the last one stays."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    async def resolve(self, host, port=0, family=socket.AF_INET):
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            {"hostname": host, "host": one, "port": port, "family": socket.AF_INET6 if ":" in one else socket.AF_INET,
             "proto": 0, "flags": socket.AI_NUMERICHOST}
            for one in found
        ]  # fmt: skip

    async def close(self):
        pass


class WebhookEndpoint:
    """A server on every loopback address, which counts requests and redirects those to /to."""

    def __init__(self):
        self.requests = []

    async def answer(self, request):
        self.requests.append(request.host)
        if request.path == "/to":
            raise web.HTTPTemporaryRedirect(request.query["url"])
        return web.Response(text="taken")

    @asynccontextmanager
    async def listening(self):
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "0.0.0.0", 0).start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()


async def post(policy, resolver, url, times=1, **options):
    """Post several times over fresh connections and return the answers, or the errors."""
    answers = []
    connector = policy.connector(resolver, use_dns_cache=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(times):
            try:
                async with session.post(url, **options) as answer:
                    answers.append(await answer.text())
            except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
                answers.append(error)
    return answers


def reach(policy, resolver, path, **options):
    """Post to `path` with {port} filled in; return the answers and the number of requests that arrived."""

    async def run():
        endpoint = WebhookEndpoint()
        async with endpoint.listening() as port:
            url = path.replace("{port}", str(port))
            return await post(policy, resolver, url, **options), len(endpoint.requests)

    return asyncio.run(run())


def test_an_address_that_changes_after_it_was_judged_is_judged_again():
    policy = AddressPolicy(allow=["127.0.0.1/32"])
    resolver = ChangingResolver(["127.0.0.1"], ["127.0.0.2"], ["::1"], ["127.0.0.1"])
    answers, arrived = reach(policy, resolver, "http://hook.example:{port}/", times=4)
    assert [answers[0], answers[3], arrived] == ["taken", "taken", 2]
    for refused in answers[1:3]:
        assert isinstance(refused.os_error, RefusedAddressError)
        assert "the address is loopback" in str(refused)


def test_a_name_of_a_private_address_is_refused():
    for address in ("127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "localhost", "0x7f.1"):
        answers, arrived = reach(AddressPolicy(), ChangingResolver([address]), "http://hook.example:{port}/")
        assert isinstance(answers[0], aiohttp.ClientConnectorError)
        assert arrived == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "127.1", "0x7f.1"]
)
def test_an_address_in_the_url_does_not_pass_by_the_check(host):
    answers, arrived = reach(AddressPolicy(), None, f"http://{host}:{{port}}/")
    assert isinstance(answers[0], aiohttp.ClientConnectorError | aiohttp.InvalidURL)
    assert arrived == 0


def test_of_several_addresses_the_allowed_one_is_taken():
    policy = AddressPolicy(allow=["127.0.0.3/32"])
    resolver = ChangingResolver(["127.0.0.1", "::1", "127.0.0.3"])
    assert reach(policy, resolver, "http://hook.example:{port}/") == (["taken"], 1)


def test_if_no_address_is_allowed_the_error_says_so():
    resolver = ChangingResolver(["127.0.0.1", "10.0.0.1"])
    answers, arrived = reach(AddressPolicy(), resolver, "http://hook.example:{port}/")
    assert isinstance(answers[0].os_error, RefusedAddressError)
    assert arrived == 0


@pytest.mark.parametrize("target", ["127.0.0.2:{port}", "[::1]:{port}", "other.example:{port}", "169.254.169.254"])
def test_a_redirect_is_judged_too(target):
    policy = AddressPolicy(allow=["127.0.0.1/32"])
    resolver = ChangingResolver(["127.0.0.1"], ["127.0.0.2"])
    answers, arrived = reach(policy, resolver, f"http://hook.example:{{port}}/to?url=http://{target}/")
    assert isinstance(answers[0].os_error, RefusedAddressError)
    assert arrived == 1
