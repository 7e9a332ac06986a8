"""The project file: its settings, overrides from the environment, and its API key. Invalid ones are in `mistakes`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.model.problem import Rejected
from reconciler.model.value import Secret
from reconciler.project.settings.config import Config, load_config
from reconciler.project.settings.project_file import Guards, Limits

FULL = """\
version: 1
stack: prod
platform:
  base_url: https://api.example.com/
  api_key: {from_env: KEY}
  account: acme
manifests: [manifests/, more.yaml]
limits: {requests_per_minute: 60, concurrency: 4}
guards: {max_delete_percent: 10, max_update_percent: 20}
variables: {team: payments, replicas: 3}
"""


def load(root: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    (root / "reconciler.yaml").write_text(text)
    return load_config(root, environ or {})


def problem_lines(root: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(Rejected) as caught:
        load(root, text, environ)
    return [str(problem) for problem in caught.value.problems]


def test_all_settings_of_a_project_file_are_read(tmp_path: Path) -> None:
    read = load(tmp_path, FULL, {"KEY": "k"})
    assert read.stack == "prod"
    assert read.connection() == ("https://api.example.com", Secret("k", "env:KEY"))
    assert read.account == "acme"
    assert read.manifests == ("manifests/", "more.yaml")
    assert read.limits == Limits(requests_per_minute=60, concurrency=4)
    assert read.guards == Guards(max_delete_percent=10, max_update_percent=20)
    assert read.variables == {"team": "payments", "replicas": 3}


def test_only_the_stack_is_required_to_work_offline(tmp_path: Path) -> None:
    read = load(tmp_path, "stack: prod\n")
    assert (read.manifests, read.limits, read.guards) == (("manifests",), Limits(), Guards())


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    environ = {
        "RECONCILER_BASE_URL": "http://127.0.0.1:8080",
        "RECONCILER_API_KEY": "other",
        "RECONCILER_STORE": "state/x.db",
    }
    read = load(tmp_path, FULL, environ)
    assert read.connection() == ("http://127.0.0.1:8080", Secret("other", "env:RECONCILER_API_KEY"))
    assert read.store == "state/x.db"


def test_an_empty_variable_of_the_environment_overrides_nothing(tmp_path: Path) -> None:
    names = ("RECONCILER_BASE_URL", "RECONCILER_API_KEY", "RECONCILER_STORE", "RECONCILER_AGENT_URL", "RECONCILER_ENV")
    text = f"{FULL}store: state/x.db\nagent: {{base_url: 'http://127.0.0.1:4999'}}\n"
    read = load(tmp_path, text, {"KEY": "k", **dict.fromkeys(names, "")})
    assert read.connection() == ("https://api.example.com", Secret("k", "env:KEY"))
    assert (read.store, read.agent_url) == ("state/x.db", "http://127.0.0.1:4999")


def test_the_repr_of_settings_does_not_contain_the_key(tmp_path: Path) -> None:
    assert "hunter2" not in repr(load(tmp_path, FULL, {"KEY": "hunter2"}))


def test_a_missing_key_is_reported_when_the_connection_needs_it(tmp_path: Path) -> None:
    read = load(tmp_path, FULL)
    with pytest.raises(Rejected) as caught:
        read.connection()
    assert str(caught.value) == (
        "reconciler.yaml:5:12: platform.api_key: the environment variable "
        "KEY is not set; export KEY where reconciler runs"
    )


@pytest.mark.parametrize("variable", ["KEY", "RECONCILER_API_KEY"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_line_breaks_at_its_end_are_not_part_of_the_key(tmp_path: Path, variable: str, end: str) -> None:
    read = load(tmp_path, FULL, {variable: f"hunter2{end}"})
    assert read.connection()[1] == Secret("hunter2", f"env:{variable}")


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("hunter2\nhunter3\n", "contains a character that API keys do not have (a line break)"),
        ("\nhunter2", "contains a character that API keys do not have (a line break)"),
        ("hunter2 ", "contains a character that API keys do not have (a space)"),
        ("“hunter2”", "contains a character that API keys do not have (a non-ASCII character)"),
        ("hunter2\x1b", "contains a character that API keys do not have (a control character)"),
        ("\n", "is empty"),
    ],
)
def test_a_key_with_an_invalid_character_is_reported_without_quoting_it(tmp_path: Path, key: str, what: str) -> None:
    (tmp_path / "key.txt").write_text(key)
    written = FULL.replace("{from_env: KEY}", "{from_file: key.txt}")
    for text, environ, named in (
        (FULL, {"KEY": key}, "KEY"),
        (FULL, {"KEY": "k", "RECONCILER_API_KEY": key}, "RECONCILER_API_KEY"),
        (written, {}, "key.txt"),
    ):
        read = load(tmp_path, text, environ)  # works offline, where the key is not needed
        with pytest.raises(Rejected) as caught:
            read.connection()
        assert str(caught.value) == (
            f"reconciler.yaml:5:12: platform.api_key: {named} {what}; set it to "
            "the key without spaces, quotes or line breaks"
        )


def test_a_missing_url_and_key_are_reported_when_the_connection_needs_them(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        load(tmp_path, "stack: prod\n").connection()
    assert [str(problem) for problem in caught.value.problems] == [
        "reconciler.yaml:1:1: platform.base_url: the URL of the platform is not set;"
        " set base_url under platform:, or RECONCILER_BASE_URL",
        "reconciler.yaml:1:1: platform.api_key: no API key is set;"
        " set api_key: {from_env: NAME} under platform:, or RECONCILER_API_KEY",
    ]


@pytest.mark.parametrize(
    "address", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:80", "https://x.example"]
)
def test_http_is_accepted_for_loopback_addresses(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, f"stack: p\nplatform: {{base_url: '{address}'}}").base_url == address


def test_a_wrong_override_names_the_variable(tmp_path: Path) -> None:
    assert problem_lines(tmp_path, "stack: p", {"RECONCILER_BASE_URL": "http://example.com"}) == [
        (
            "RECONCILER_BASE_URL: would send the API key unencrypted; use https "
            "(http is accepted for loopback addresses only)"
        )
    ]


def test_a_folder_without_a_project_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        load_config(tmp_path, {})
    remedy = f"`reconciler init` creates one in {tmp_path}; --project selects another directory"
    assert str(caught.value) == f"there is no file reconciler.yaml; {remedy}"
