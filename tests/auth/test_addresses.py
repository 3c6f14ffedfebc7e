import pytest

from auth.addresses import check_gateway_url, is_loopback
from auth.errors import BadJoinCode


@pytest.mark.parametrize(
    "url",
    [
        "https://vps.example:7777",
        "https://203.0.113.7",
        "https://10.1.2.3:7777",
        "https://100.64.0.7:7777",
        "https://[2001:db8::7]:7777",
        "http://127.0.0.1:7777",
        "http://127.8.8.8:7777",
        "http://[::1]:7777",
        "http://localhost:7777",
    ],
)
def test_addresses_a_gateway_may_have(url: str) -> None:
    assert check_gateway_url(url + "/") == url


@pytest.mark.parametrize("url", ["http://10.1.2.3:7777", "http://vps.tail1234.ts.net:7777"])
def test_plain_http_to_other_machines_is_asked_for(url: str) -> None:
    with pytest.raises(BadJoinCode):
        check_gateway_url(url)
    assert check_gateway_url(url, allow_plain=True) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "vps.example",
        "file:///etc/passwd",
        "ftp://vps.example",
        "ws://127.0.0.1",
        "unix:///run/x.sock",
        "https://user@vps.example",
        "https://user:word@vps.example",
        "https://@vps.example",
        "https://vps.example/path",
        "https://vps.example?x",
        "https://vps.example/#x",
        "https://vps.example:0",
        "https://vps.example:65536",
        "https://vps.example:x",
        "https://",
        "https://:7777",
        "https://vps.example\\@evil.example",
        "https://vps .example",
        "https://vps.example\n",
        "https://vps_.example",
        "https://[fe80::1%25eth0]",
        "https://[fe80::1]",
        "https://169.254.169.254",
        "https://[::ffff:169.254.169.254]",
        "https://[fd00:ec2::254]",
        "https://100.100.100.200",
        "https://metadata.google.internal",
        "https://metadata.google.internal.",
        "https://0.0.0.0",
        "https://[::]",
        "https://224.0.0.1",
        "https://2130706433",
        "https://0x7f.1",
        "https://0x7f000001",
        "https://127.1",
        "https://0177.0.0.1",
        "https://[::1",
        "https://" + "a" * 300,
    ],
)
@pytest.mark.parametrize("allow_plain", [False, True])
def test_addresses_that_are_never_called(url: str, allow_plain: bool) -> None:
    for text in (url, url.replace("https://", "http://")):
        with pytest.raises(BadJoinCode):
            check_gateway_url(text, allow_plain=allow_plain)


def test_a_name_that_begins_like_loopback_is_not_loopback() -> None:
    for host in ("127.0.0.1.evil.example", "localhost.evil.example", "[::ffff:10.0.0.1]"):
        with pytest.raises(BadJoinCode):
            check_gateway_url(f"http://{host}:7777")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.168.1.5", False),
        ("0.0.0.0", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
