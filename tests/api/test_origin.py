"""The origin to which the key may be sent, and the addresses that are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://API.example.com:443/", "https://api.example.com"),
        ("https://api.example.com:8443/v2/", "https://api.example.com:8443"),
        ("http://127.0.0.1:4000", "http://127.0.0.1:4000"),
        ("http://[::1]:4000", "http://[::1]:4000"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://localhost", "http://localhost"),
        ("https://api.example.com.", "https://api.example.com."),
        (f"https://{'a' * 63}.example.com", f"https://{'a' * 63}.example.com"),
    ],
)
def test_a_base_url_has_one_origin(address: str, origin: str) -> None:
    assert str(Origin.parse(address)) == origin


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://api.example.com", "plain http"),
        ("http://127.0.0.1.example.com", "plain http"),
        ("https://user:pass@api.example.com", "user name"),
        ("https://user@api.example.com", "user name"),
        ("https://api.example.com#x", "must not contain a query or fragment"),
        ("https://api.example.com?x=1", "must not contain a query or fragment"),
        ("api.example.com", "is not a URL"),
        ("ftp://api.example.com", "is not a URL"),
        ("https://", "is not a URL"),
        ("https://api.example.com:port", "is not a URL"),
        ("https://api example.com", "is not a URL"),
        ("", "is not a URL"),
        ("https://api..example.com", "api..example.com is not a valid host name"),
        (f"https://{'a' * 64}.example.com", "a{64}.example.com is not a valid host name"),
        (f"https://{'a.' * 130}com", "is not a valid host name"),
        ("https://.example.com", "is not a valid host name"),
        ("https://höst.example.com", "other than ASCII: write a host name as xn--"),
    ],
)
def test_an_invalid_base_url_is_refused_with_the_reason(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Origin.parse(address)


@pytest.mark.parametrize("path", ["x", "//x", "/../x", "/a/./b", "/a b", "/a\\b", "/a\r\nb", "", "/%2E%2e/x", "/ü"])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="is not a path"):
        Origin.parse("https://api.example.com").at(path)


def test_a_path_is_joined_to_the_base_url() -> None:
    assert Origin.parse("https://api.example.com/v2/").at("/edges/tls") == "https://api.example.com/v2/edges/tls"


@pytest.mark.parametrize("user", ["user@", "user:password@", "@"])
def test_a_next_page_with_a_user_name_is_refused(user: str) -> None:
    origin = Origin.parse("https://api.example.com")
    assert origin.follow("https://api.example.com/x?p=2") == "https://api.example.com/x?p=2"
    with pytest.raises(Refused, match="it was not followed"):
        origin.follow(f"https://{user}api.example.com/x?p=2")


@pytest.mark.parametrize(
    ("base", "address", "followed"),
    [
        ("https://api.example.com", "/x?p=2", "https://api.example.com/x?p=2"),
        ("https://api.example.com/v2", "/x?p=2", "https://api.example.com/x?p=2"),
        ("https://api.example.com", "https://API.example.com:443/x", "https://api.example.com/x"),
        ("https://api.example.com", "https://api.example.com?p=2", "https://api.example.com/?p=2"),
        ("https://api.example.com", "https://api.example.com/x?p=2#there", "https://api.example.com/x?p=2"),
        ("https://api.example.com:8443", "https://api.example.com:8443/x", "https://api.example.com:8443/x"),
        ("http://localhost:80", "http://localhost/x", "http://localhost/x"),
        ("http://[::1]:4000", "http://[::1]:4000/x", "http://[::1]:4000/x"),
    ],
)
def test_a_next_page_on_the_same_origin_is_followed(base: str, address: str, followed: str) -> None:
    assert Origin.parse(base).follow(address) == followed


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com.evil.example",
        "https://api.example.com0",
        "https://api.example.co",
        "https://a.api.example.com",
        "https://zpi.example.com",
        "https://api.example.com:442",
        "https://api.example.com:444",
        "https://api.example.com:8443",
        "http://api.example.com",
        "http://api.example.com:443",
        "httpz://api.example.com:443",
        "ftp://api.example.com",
        "//api.example.com",
        "//evil.example",
    ],
)
def test_a_next_page_on_another_origin_is_refused_with_the_origin(address: str) -> None:
    named = address if ":" in address else f":{address}"
    with pytest.raises(Refused) as refused:
        Origin.parse("https://api.example.com").follow(f"{address}/secret?x=1")
    assert str(refused.value) == (
        f"the platform's next_page_uri leads to {named}, not to https://api.example.com; it was not followed, "
        "and the key was not sent there"
    )


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.com/../x",
        "https://api.example.com/%2E%2e/x",
        "https://api.example.com/x/.",
        "https://api.example.com\\x",
        "https://api.example.com/x?y=a\\b",
        "https://api.example.com:port/x",
        "https://api.example.com/ x",
        "",
    ],
)
def test_a_next_page_with_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(Refused, match="is not a valid address; it was not followed"):
        Origin.parse("https://api.example.com").follow(address)


@pytest.mark.parametrize("path", ["x", "?page=2", "x/y"])
def test_a_next_page_with_a_relative_path_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="it was not followed"):
        Origin.parse("https://api.example.com").follow(path)


@pytest.mark.parametrize("path", ["/x?y=../z", "/x?a=1#b", "/a..b/.c", "/x?y=//z"])
def test_only_complete_dot_segments_are_refused(path: str) -> None:
    origin = Origin.parse("https://api.example.com")
    assert origin.at(path) == f"https://api.example.com{path}"
    with pytest.raises(Refused):
        origin.at("/x?../z")


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("http://localhost", True),
        ("http://127.8.9.1:80", True),
        ("http://[::1]", True),
        ("https://localhost", True),
        ("https://x.localhost", False),
        ("https://localhost.example", False),
        ("https://10.0.0.1", False),
        ("https://[fe80::1]", False),
    ],
)
def test_only_this_machine_is_loopback(address: str, loopback: bool) -> None:
    assert Origin.parse(address).is_loopback is loopback


def test_a_host_name_may_have_253_characters() -> None:
    longest = ".".join(["a" * 49] * 5) + "." + "b" * 3
    assert len(longest) == 253
    assert Origin.parse(f"https://{longest}").host == longest
    with pytest.raises(ValueError, match="is not a valid host name") as refused:
        Origin.parse(f"https://{longest}b")
    assert f"{longest[:80]} is" in str(refused.value)


@pytest.mark.parametrize("address", ["https://:word@api.example.com", "https://@api.example.com"])
def test_an_empty_user_name_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must not contain a user name or password"):
        Origin.parse(address)


def test_the_client_is_imported_without_an_http_library() -> None:
    code = "import sys, reconciler.api.platform; print(*{'httpx', 'urllib.request'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
