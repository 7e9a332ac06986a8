"""Where the key may go."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused


@pytest.mark.parametrize(
    ("address", "shown"),
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
def test_a_base_address_has_one_origin(address: str, shown: str) -> None:
    assert str(Origin.parse(address)) == shown


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
def test_other_addresses_are_refused_with_the_reason(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Origin.parse(address)


@pytest.mark.parametrize("path", ["x", "//x", "/../x", "/a/./b", "/a b", "/a\\b", "/a\r\nb", "", "/%2E%2e/x", "/ü"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="is not a path"):
        Origin.parse("https://api.example.com").at(path)


def test_a_path_goes_below_the_base_address() -> None:
    assert Origin.parse("https://api.example.com/v2/").at("/edges/tls") == "https://api.example.com/v2/edges/tls"


@pytest.mark.parametrize("user", ["user@", "user:password@", "@"])
def test_a_next_page_with_a_user_name_is_refused_though_the_host_is_the_same(user: str) -> None:
    origin = Origin.parse("https://api.example.com")
    assert origin.follow("https://api.example.com/x?p=2") == "https://api.example.com/x?p=2"
    with pytest.raises(Refused, match="it was not followed"):
        origin.follow(f"https://{user}api.example.com/x?p=2")


def test_importing_the_client_imports_no_http_library() -> None:
    code = "import sys, reconciler.api.platform; print(*{'httpx', 'aiohttp'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
