import pytest

from gateway.links.reach import Issuer, is_local, reach_of
from outbox.ids import NodeId


def issuer(url: str) -> Issuer:
    return Issuer(NodeId("vps"), url, "key")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7420", True),
        ("http://[::1]:7420", True),
        ("http://localhost:1", True),
        ("https://mesh.example", False),
        ("http://10.0.0.7:7420", False),
        ("http://", False),
        ("http://[", True),
    ],
)
def test_loopback_is_this_machine(url: str, expected: bool) -> None:
    assert is_local(url) is expected


def test_a_founder_without_settings_is_reached_where_it_listens() -> None:
    reach = reach_of((), None, "127.0.0.1", 7420)
    assert reach.endpoints == ("http://127.0.0.1:7420",)
    assert reach.loopback


def test_a_node_on_its_issuers_machine_publishes_its_port() -> None:
    assert reach_of((), issuer("http://127.0.0.1:7420"), "::1", 5).endpoints == ("http://[::1]:5",)


def test_a_laptop_invited_from_afar_only_dials_and_never_dials_loopback() -> None:
    reach = reach_of((), issuer("https://mesh.example"), "127.0.0.1", 5)
    assert reach.endpoints == ()
    assert not reach.loopback


def test_settings_are_what_is_published() -> None:
    reach = reach_of(("https://a.example",), None, "127.0.0.1", 5)
    assert reach.endpoints == ("https://a.example",)
    assert not reach.loopback


def test_a_host_header_may_name_what_is_published_and_where_it_listens() -> None:
    reach = reach_of(("https://mesh.example", "http://10.0.0.7:7420"), None, "0.0.0.0", 7420)
    assert reach.names == {
        "mesh.example",
        "mesh.example:443",
        "10.0.0.7:7420",
        "0.0.0.0:7420",
        "127.0.0.1:7420",
        "localhost:7420",
    }
