"""Deliveries to secrets of GitHub Actions: checked first, exact afterwards, and no secret in any error."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.api.github_secrets import PROBE, GitHubSecrets, github_place
from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from tests.api.deliveries import TO_GITHUB, TO_PROD, TOKEN
from tests.harness.secret_stores import Answer, GitHubServer, run_server

pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.mark.parametrize(("delivery", "environment"), [(TO_GITHUB, ""), (TO_PROD, "prod")])
async def test_a_secret_is_encrypted_with_the_key_of_github(
    github: GitHubServer, delivery: Delivery, environment: str
) -> None:
    sink = GitHubSecrets(github.environ)
    await sink.check(delivery, overwrites=False)
    assert github.secrets == {}  # the secret that the check wrote is deleted
    assert [write.rpartition("/")[2] for write in github.writes()] == [PROBE, PROBE]
    await sink.deliver(delivery, TOKEN, overwrites=False)
    await sink.check(delivery, overwrites=True)  # already checked
    assert github.secrets == {(environment, "AGENT"): "canary-token-4Hs8"}
    assert len(github.writes()) == 3


async def test_an_existing_secret_of_github_is_overwritten_only_if_approved(github: GitHubServer) -> None:
    github.secrets["", "AGENT"] = "of another user"
    sink = GitHubSecrets(github.environ)
    for act in (sink.check(TO_GITHUB, overwrites=False), sink.deliver(TO_GITHUB, TOKEN, overwrites=False)):
        with pytest.raises(Undeliverable, match="exists and was not written by this project"):
            await act
    assert (await sink.exists(TO_GITHUB), await sink.exists(TO_PROD)) == (True, False)
    await sink.check(TO_GITHUB, overwrites=True)
    await sink.deliver(TO_GITHUB, TOKEN, overwrites=True)
    assert github.secrets == {("", "AGENT"): "canary-token-4Hs8"}


@pytest.mark.parametrize(
    ("change", "delivery", "text"),
    [
        ({"rights": "read"}, TO_GITHUB, "may not write secrets of acme/web: it needs the permission `secrets: write`"),
        ({"rights": "read"}, TO_PROD, "the permission `environments: write`"),
        ({"rights": "none"}, TO_GITHUB, "does not have acme/web, or the token in GITHUB_TOKEN has no access"),
        ({"keys": {}}, TO_PROD, "does not have the environment prod of acme/web"),
        ({"faults": [("GET", "", 301)]}, TO_GITHUB, "the GitHub repository acme/web was renamed"),
        ({"token": "another"}, TO_GITHUB, "does not accept the token in GITHUB_TOKEN"),
        ({"faults": [("PUT", "", (403, {"retry-after": "3600"}))]}, TO_GITHUB, "asks to wait 3600 s"),
        ({"faults": [("GET", "", 503)] * 4}, TO_GITHUB, "returned status 503"),
    ],
)
async def test_the_check_of_github_reports_each_problem(
    github: GitHubServer, change: dict[str, Any], delivery: Delivery, text: str
) -> None:
    environ = github.environ
    for name, value in change.items():
        setattr(github, name, value)
    with pytest.raises(Undeliverable) as caught:
        await GitHubSecrets(environ).check(delivery, overwrites=False)
    assert text in str(caught.value)
    assert environ["GITHUB_TOKEN"] not in str(caught.value)
    assert github.secrets == {}


@pytest.mark.parametrize("fault", [503, "drop", "refuse", (403, {"retry-after": "1"})])
async def test_a_write_to_github_is_retried_after_faults(github: GitHubServer, fault: Any) -> None:
    github.faults = [("GET", "public-key", 502), ("PUT", "AGENT", fault)]
    await GitHubSecrets(github.environ).deliver(TO_GITHUB, TOKEN, overwrites=False)
    assert github.secrets == {("", "AGENT"): "canary-token-4Hs8"}


async def test_nothing_is_sent_to_github_without_pynacl(github: GitHubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("nacl"):
            raise ImportError(name)
        return imported(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Undeliverable, match=r"install the extra `reconciler\[github\]`"):
        await GitHubSecrets(github.environ).check(TO_GITHUB, overwrites=False)
    assert github.log == []


def test_github_without_a_token_is_refused() -> None:
    with pytest.raises(Undeliverable, match="GITHUB_TOKEN is not set"):
        GitHubSecrets({})


@dataclass
class OddGitHub(GitHubServer):
    odd: dict[str, Answer] = field(default_factory=dict)

    def answer(self, method: str, path: str, headers: Any, body: Any) -> Answer:
        found = next((response for start, response in self.odd.items() if f"{method} {path}".startswith(start)), None)
        return found or super().answer(method, path, headers, body)


OF_WEB = "/repos/acme/web/actions/secrets"


@pytest.mark.parametrize(
    ("request_", "response", "text"),
    [
        (f"GET {OF_WEB}/public-key", (200, {"key": "x"}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, {"key": "AAAA"}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, {}), "returned a public key that cannot be used"),
        (f"GET {OF_WEB}/public-key", (200, ["x"]), "is not a JSON object"),
        (f"GET {OF_WEB}/public-key", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"PUT {OF_WEB}/{PROBE}", (422, {}), "returned status 422 for the secrets of acme/web"),
        (f"DELETE {OF_WEB}/{PROBE}", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"GET {OF_WEB}/AGENT", (418, {}), "returned status 418 for the secrets of acme/web"),
        (f"GET {OF_WEB}/AGENT", (307, {}), "the GitHub repository acme/web was renamed"),
        (f"GET {OF_WEB}/AGENT", (308, {}), "the GitHub repository acme/web was renamed"),
    ],
)
async def test_an_unexpected_response_of_github_fails_the_check(request_: str, response: Answer, text: str) -> None:
    server = OddGitHub(odd={request_: response})
    with run_server(server), pytest.raises(Undeliverable) as caught:
        await GitHubSecrets(server.environ).check(TO_GITHUB, overwrites=False)
    assert text in str(caught.value)


async def test_a_probe_that_another_run_deleted_passes_the_check() -> None:
    server = OddGitHub(odd={f"DELETE {OF_WEB}/{PROBE}": (404, {})})
    with run_server(server):
        sink = GitHubSecrets(server.environ)
        await sink.check(TO_GITHUB, overwrites=False)
        await sink.check(TO_GITHUB, overwrites=False)
        await sink.check(TO_PROD, overwrites=False)
    assert [write.split()[0] for write in server.writes()] == ["PUT", "DELETE"] * 2


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({}, "https://api.github.com/repos/acme/web/actions/secrets"),
        (
            {"GITHUB_API_URL": " https://Git.example/api/v3/ "},
            "https://git.example/api/v3/repos/acme/web/actions/secrets",
        ),
    ],
)
def test_a_place_at_github_does_not_depend_on_its_spelling(environ: dict[str, str], path: str) -> None:
    spelled = Delivery("to_github_secret", "Acme/Web", settings={"name": "agent"})
    assert github_place(spelled, environ).is_same(github_place(TO_GITHUB, environ))
    assert (github_place(spelled, environ).path, github_place(spelled, environ).entry) == (path, "AGENT")
    prod = Delivery("to_github_secret", "acme/web", settings={"name": "AGENT", "environment": "a/b c"})
    assert github_place(prod, {}).path.endswith("/repos/acme/web/environments/a%2fb%20c/secrets")
