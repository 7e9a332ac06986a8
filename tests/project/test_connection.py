"""URLs and keys of a connection, which are validated before a request is sent, and their messages."""

from __future__ import annotations

from array import array

import pytest

from reconciler.languages.yaml.positions import Places
from reconciler.model.value import Sealed, Secret
from reconciler.project.settings import connection
from reconciler.project.settings.connection import check_agent_url, check_platform_url

NO_URL = "is not a URL; write it like https://api.example.com"
USER = "contains a user or password; remove them, and set api_key"
MORE = "has a query or fragment; write only the base URL"
PLAIN = "would send the API key unencrypted; use https (http is accepted for loopback addresses only)"


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("https://api.example.com", None),
        ("https://api.example.com:8443/v2/", None),
        ("http://localhost", None),
        ("http://127.0.0.1:80", None),
        ("http://127.8.8.8", None),
        ("http://[::1]:80", None),
        ("", NO_URL),
        ("api.example.com", NO_URL),
        ("ftp://api.example.com", NO_URL),
        ("https://", NO_URL),
        ("https:///path", NO_URL),
        ("https://a:port", NO_URL),
        ("https://a:99999", NO_URL),
        ("https://[::1", NO_URL),
        ("https://user@a.example", USER),
        ("https://:password@a.example", USER),
        ("https://@a.example", USER),
        ("https://a.example?x=1", MORE),
        ("https://a.example/#x", MORE),
        ("http://a.example", PLAIN),
        ("http://localhost.example", PLAIN),
        ("http://10.0.0.1", PLAIN),
        ("http://[::2]", PLAIN),
        ("http://0.0.0.0", PLAIN),
    ],
)
def test_a_url_that_is_unsafe_for_a_key_is_refused(url: str, wrong: str | None) -> None:
    assert check_platform_url(url) == wrong


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("http://127.0.0.1:4040", None),
        ("https://agent.example", None),
        ("http://agent.example", "is unencrypted; use https (http is accepted for loopback addresses only)"),
        ("agent", "is not a URL; write it like http://127.0.0.1:4040"),
        ("http://u:p@localhost", "contains a user or password; remove them"),
    ],
)
def test_the_url_of_an_agent_is_checked_in_terms_of_the_agent(url: str, wrong: str | None) -> None:
    assert check_agent_url(url) == wrong


def test_only_set_variables_override_and_invalid_ones_are_named() -> None:
    environ = {
        "RECONCILER_BASE_URL": "https://a.example?x",
        "RECONCILER_AGENT_URL": "nowhere",
        "RECONCILER_API_KEY": "k",
        "RECONCILER_STORE": "s.db",
    }
    overrides, problems = connection.read_overrides(environ)
    assert (overrides.base_url, overrides.agent_url, overrides.store) == ("https://a.example?x", "nowhere", "s.db")
    assert overrides.api_key == Secret("k", "env:RECONCILER_API_KEY")
    assert [str(problem) for problem in problems] == [
        f"RECONCILER_BASE_URL: {MORE}",
        "RECONCILER_AGENT_URL: is not a URL; write it like http://127.0.0.1:4040",
    ]
    assert connection.read_overrides(dict.fromkeys(environ, "")) == (connection.Overrides(), [])


def test_the_base_url_is_the_configured_one_or_that_of_the_profile() -> None:
    assert connection.resolve_base_url("https://a.example//", "ngrok") == "https://a.example"
    assert connection.resolve_base_url(None, "ngrok") == "https://api.ngrok.com"
    assert connection.resolve_base_url(None, "specification") is None


def test_only_line_breaks_at_the_end_of_a_key_are_removed() -> None:
    assert connection.parse_key(Secret("\nk \r\n\n", "file:key")) == Secret("\nk ", "file:key")
    assert connection.parse_key("k") is None
    assert connection.parse_key(Sealed("env:KEY")) is None


@pytest.mark.parametrize(
    ("source", "named"), [("env:KEY", "KEY"), ("file:a:b", "a:b"), ("manifest:reconciler.yaml.x", "the key")]
)
@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("canary \n", "a line break"),
        ("canary\r", "a line break"),
        ("canary\t", "a space"),
        ("canary é", "a space"),
        ("canaryé", "a non-ASCII character"),
        ("canary\x7f", "a control character"),
    ],
)
def test_a_key_with_an_invalid_character_is_reported_by_its_source(
    source: str, named: str, key: str, what: str
) -> None:
    problem = connection.check_key(Secret(key, source), Places("reconciler.yaml", None, array("Q", [0])))
    assert problem is not None
    assert problem.text == f"{named} contains a character that API keys do not have ({what})"
    assert "canary" not in str(problem)


def test_only_printable_ascii_is_a_key() -> None:
    places = Places("reconciler.yaml", None, array("Q", [0]))
    for text in map(chr, range(256)):
        problem = connection.check_key(Secret(f"a{text}b", "env:KEY"), places)
        assert (problem is None) == ("!" <= text <= "~"), repr(text)
