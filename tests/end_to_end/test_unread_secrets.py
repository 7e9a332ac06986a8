"""`plan --secrets unchanged`: a request is planned without the secrets of its manifests, and applied with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.examples.forge import Forge
from tests.examples.merges import Push, Repository
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project

VAULT = "kind: Vault\nname: v\nspec: {name: v}\n"
ASSUME = ("--secrets", "unchanged")
FIRST, SECOND, LOGIN = ("canary" + text for text in ("OfTheFirst", "OfTheSecond", "OfTheLogin"))

SECRETS: Final = {"FIRST": FIRST, "SECOND": SECOND, "LOGIN": LOGIN}


def secret(source: str = "from_env: FIRST", description: str = "") -> str:
    more = f", description: {description}" if description else ""
    return f"kind: Secret\nname: s\nspec: {{vault_id: {{ref: Vault/v}}, name: s, value: {{{source}}}{more}}}\n"


def edge(client: str = "shop", source: str = "LOGIN") -> str:
    return f"""\
kind: HTTPSEdge
name: shop
spec: {{}}
---
kind: HTTPSEdgeRoute
name: login
spec:
  edge_id: {{ref: HTTPSEdge/shop}}
  match_type: path_prefix
  match: /
  oidc: {{issuer: "https://login.example.com", client_id: {client}, client_secret: {{from_env: {source}}}}}
"""


FILES = {"manifests/v.yaml": VAULT, "manifests/s.yaml": secret(), "manifests/e.yaml": edge()}


class Merged(Repository):
    """A repository whose plan jobs have no secret of a manifest, and whose apply jobs have all."""

    secrets: Mapping[str, str] = SECRETS

    def review(self, branch: str, files: dict[str, str], *words: str) -> tuple[Output, Push]:
        """The plan of a request, and the push that merges it."""
        self.commit(branch, files)
        request = self.open(branch)
        planned = self.plan(request, *ASSUME, *words)
        assert planned.code == 0, planned
        return planned, self.merge(request)

    def apply(self, push: Push, *words: str, at: str = "") -> Output:
        before, self.environ = self.environ, {**self.environ, **self.secrets}
        try:
            return super().apply(push, *words, at=at)
        finally:
            self.environ = before


def test_a_plan_without_the_secrets_names_their_variables_and_the_option_that_needs_none(on_sandbox: Project) -> None:
    on_sandbox.environ |= SECRETS
    on_sandbox.write("manifests/all.yaml", f"{VAULT}---\n{secret()}---\n{edge()}")
    assert on_sandbox("apply", "-y").code == 0
    on_sandbox.write("manifests/all.yaml", f"{secret()}---\n{edge()}")
    for name in SECRETS:
        on_sandbox.environ.pop(name)
    planned = on_sandbox("plan")
    assert planned.code == 1
    assert planned.err.endswith(
        "note: secrets that are not set here: FIRST, LOGIN; a job that may not read them plans with --secrets "
        "unchanged, which assumes that they are as last applied\n"
    )
    # Only what no manifest declares, and by its address: the others have their own problems.
    [vault] = [line for line in planned.out.splitlines() if "no valid manifest declares" in line]
    assert vault.strip().startswith("warning: no valid manifest declares Vault/v (vault_")
    assert "secret_" not in planned.out
    assert "in the plan" in planned.err
    assert "secrets that are not set" not in on_sandbox("plan", *ASSUME).err


def test_one_comment_and_one_page_for_all_environments_name_what_is_assumed_and_what_will_be_sent(
    on_sandbox: Project,
) -> None:
    on_sandbox.write("manifests/all.yaml", f"{VAULT}---\n{secret()}---\n{edge()}")
    for name in ("staging", "prod"):
        on_sandbox.write(f"environments/{name}.yaml", f"stack: shop-{name}\nVault/v: {{spec: {{name: v-{name}}}}}\n")
        on_sandbox.environ |= SECRETS
        assert on_sandbox("apply", "-y", "--env", name).code == 0
        for secret_name in SECRETS:
            on_sandbox.environ.pop(secret_name)
    patches = "Vault/v: {spec: {name: v-prod}}\nSecret/s: {spec: {value: {from_env: SECOND}}}\n"
    on_sandbox.write("environments/prod.yaml", f"stack: shop-prod\n{patches}")
    files = []
    for name in ("staging", "prod"):
        files.append(f"{name}.json")
        assert on_sandbox("plan", *ASSUME, "--env", name, "--out", files[-1]).code == 0
    comment = on_sandbox("comment", "--dry-run", *files).out
    page = on_sandbox("show", *files, "--format", "html").out
    for text in (comment, flat(re.sub("<[^>]*>", " ", page))):
        text = text.replace("`", "")
        assert "assumed unchanged: 2 secrets that could not be read here: HTTPSEdgeRoute/login.oidc" in text
        assert "assumed unchanged: 1 secret that could not be read here: HTTPSEdgeRoute/login.oidc" in text
        assert "Secret/s.value (env:FIRST)" in text
        assert "(sensitive, unknown: from env:SECOND, will be sent)" in text
    assert "1 to update" in comment


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    forge = Forge(artifacts=tmp_path / "artifacts")
    with forge:
        yield forge


@pytest.fixture
def repository(tmp_path: Path, forge: Forge, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> Merged:
    """A repository whose manifests were planned without secrets and applied."""
    repository = Merged("github", tmp_path / "machines", forge, sandbox, capsys)
    planned, push = repository.review("first", FILES)
    assert planned.out.count("will be sent)") == 2
    applied = repository.apply(push)
    assert (applied.code, applied.out) == (0, "Applied: 4 created.\n"), applied
    return repository


def flat(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def find_login(sandbox: Sandbox) -> str:
    """The client secret of the route."""
    return str(sandbox.get("/edges/https")["https_edges"][0]["routes"][0]["oidc"]["client_secret"])


def test_a_request_is_reviewed_without_secrets_and_applied_with_them(repository: Merged, sandbox: Sandbox) -> None:
    planned, push = repository.review("edit", {"manifests/s.yaml": secret(description="new")})
    assert "sensitive" not in planned.out
    listed = "HTTPSEdgeRoute/login.oidc.client_secret (env:LOGIN), Secret/s.value (env:FIRST)"
    assert f"assumed unchanged: 2 secrets that could not be read here: {listed}; an apply" in flat(planned.out)
    assert repository.apply(push).out == "Applied: 1 updated.\n"
    # Another reference, to a value that only the apply knows.
    planned, push = repository.review("other", {"manifests/s.yaml": secret("from_env: SECOND", "new")})
    assert "(sensitive, unknown: from env:SECOND, will be sent)" in flat(planned.out)
    assert repository.apply(push).out == "Applied: 1 updated.\n"
    again, _ = repository.review("again", {"README.md": "x\n"})
    assert "No changes" in again.out
    repository.environ = {**repository.environ, **repository.secrets}
    with_secrets, _ = repository.review("seen", {"README.md": "y\n"})
    assert "No changes" in with_secrets.out


def test_a_secret_that_differs_from_what_was_assumed_is_sent_only_after_a_plan_with_it(
    repository: Merged, sandbox: Sandbox
) -> None:
    repository.secrets = {**repository.secrets, "FIRST": SECOND, "LOGIN": SECOND}
    _, push = repository.review("edit", {"manifests/v.yaml": VAULT.replace("name: v}", "name: v, description: x}")})
    applied = repository.apply(push)
    assert (applied.code, applied.out) == (0, "Applied: 1 updated.\n"), applied
    assert (
        "warning: Secret/s.value: the secret from env:FIRST is not the one that was last applied, as the plan "
        "assumed; nothing is sent for it; to apply it, name it by another variable or file, or plan without "
        "`--secrets unchanged`\n"
    ) in applied.err
    assert "HTTPSEdgeRoute/login.oidc.client_secret: the secret from env:LOGIN is not" in applied.err
    # A change of the same resources is stale: it cannot be sent without a value that was not reviewed.
    _, push = repository.review("both", {"manifests/s.yaml": secret(description="new"), "manifests/e.yaml": edge("b")})
    applied = repository.apply(push)
    assert applied.code == 3
    assert applied.err.count("nothing is sent for it; to apply it, name it by another variable or file") == 2
    assert "a secret changed after the plan was created" in applied.err
    assert find_login(sandbox) == LOGIN
    # A plan job that has the secrets shows them as changed.
    repository.environ = {**repository.environ, **repository.secrets}
    planned, push = repository.review("seen", {"README.md": "x\n"})
    assert "assumed" not in planned.out
    assert repository.apply(push).out == "Applied: 2 updated.\n"
    assert find_login(sandbox) == SECOND


# --- a plan file ------------------------------------------------------------------------------------------------------


@pytest.fixture
def applied(on_sandbox: Project) -> Project:
    """A project that was applied, in an environment without its secrets now."""
    for name, text in FILES.items():
        on_sandbox.write(name, text)
    on_sandbox.environ |= SECRETS
    assert on_sandbox("apply", "-y").code == 0
    for name in SECRETS:
        del on_sandbox.environ[name]
    return on_sandbox


def test_without_the_option_a_secret_that_cannot_be_read_is_an_error(applied: Project) -> None:
    assert "the environment variable LOGIN is not set" in flat(applied("plan").out)
    assert applied("plan", *ASSUME, "--detailed-exitcode").code == 0


def test_drift_of_a_secret_is_found_without_it(applied: Project, sandbox: Sandbox) -> None:
    assert applied("drift", *ASSUME).code == 0
    route = sandbox.get("/edges/https")["https_edges"][0]["routes"][0]
    sandbox.put(f"/edges/https/{route['edge_id']}/routes/{route['id']}/oidc", {**route["oidc"], "client_secret": "x"})
    drift = applied("drift", *ASSUME)
    assert drift.code == 2
    assert "oidc.client_secret" in drift.out
    planned = flat(applied("plan", *ASSUME).out)
    assert "oidc.client_secret: (sensitive value changed) (changed on the platform)" in planned
    assert applied("plan", *ASSUME, "--out", "plan.json").code == 0
    applied.environ |= SECRETS | {"LOGIN": SECOND}
    assert "nothing is sent for it" in applied("apply", "plan.json", "-y").err
    applied.environ |= SECRETS
    assert applied("apply", "plan.json", "-y").code == 0
    assert find_login(sandbox) == LOGIN


def test_a_plan_file_created_without_secrets_is_applied_with_them(applied: Project, sandbox: Sandbox) -> None:
    applied.write("manifests/s.yaml", secret("from_file: secrets/second"))
    applied.write("manifests/e.yaml", edge("other"))
    assert applied("plan", *ASSUME, "--out", "plan.json").code == 0
    written = json.loads((applied.root / "plan.json").read_text())
    assert written["unread"] == ["env:LOGIN", "file:secrets/second"]
    assert [(item["path"], item["source"]) for item in written["assumed"]] == [("oidc.client_secret", "env:LOGIN")]
    sandbox.forget_log()
    missing = applied("apply", "plan.json", "-y")
    assert missing.code == 3
    assert "Secret/s: the secret from file:secrets/second cannot be read" in missing.err
    assert sandbox.calls() == []
    applied.environ |= SECRETS
    applied.write("secrets/second", f"{SECOND}\n")
    result = applied("apply", "plan.json", "-y", "--quiet")
    assert (result.code, result.out) == (0, "Applied: 2 updated.\n"), result
    assert "changed after this plan was created" not in result.err  # a secret that can be read now is no other manifest
    assert "No changes" in applied("plan").out


def test_each_format_of_a_plan_shows_what_is_assumed_and_what_is_unknown(applied: Project) -> None:
    applied.write("manifests/s.yaml", secret("from_env: SECOND"))
    formats = ("text", "markdown=plan.md", "html=plan.html", "json=plan.json")
    result = applied("plan", *ASSUME, *(word for name in formats for word in ("--format", name)))
    assert result.code == 0
    for text in (result.out, *((applied.root / name).read_text() for name in ("plan.md", "plan.html"))):
        assert "(sensitive, unknown: from env:SECOND, will be sent)" in flat(text)
        assert "assumed unchanged: 1 secret" in text
    (changed,) = json.loads((applied.root / "plan.json").read_text())["changes"]
    assert [field["new"] for field in changed["fields"]] == [{"$unread": "env:SECOND"}]


def test_a_policy_sees_the_source_of_a_secret_and_no_value(applied: Project) -> None:
    message = "value: ${string(resource.spec.value.source)}"
    text = f"policy: source\nscope: {{kinds: [Secret]}}\ncheck: 'false'\nmessage: '{message}'\n"
    applied.write("policies/source.yaml", text)
    assert "value: env:FIRST" in applied("plan", *ASSUME).out


def test_a_snapshot_without_secrets_is_sufficient_for_the_plan_of_a_fork(applied: Project) -> None:
    assert applied("snapshot", *ASSUME, "--out", ".reconciler/snapshot.json").code == 0
    planned = applied("plan", "--snapshot", ".reconciler/snapshot.json")
    assert "No changes" in planned.out
    assert "assumed unchanged: 2 secrets" in flat(planned.out)
