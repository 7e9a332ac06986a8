"""Values of CI tokens, cloud keys and files with keys are refused in fields that plans and the platform show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.model.problem import Problem, Rejected
from reconciler.project.documents import secret_sources
from reconciler.project.manifests.load import load_manifests
from reconciler.project.settings.config import load_config

TOKEN = "glpat-0123456789abcdefghij"
HEAD = "version: 1\nstack: prod\n"
POLICY = "kind: IPPolicy\nname: a\nspec: {description: %s}\n"
EACH = "for_each: {a: {d: *}}\n" + POLICY.replace("name: a", 'name: "${{ each.key }}"')
DOCS = Path(__file__).parents[2] / "docs/manifests.md"


def problems(
    root: Path,
    manifest: str,
    settings: str = HEAD,
    environ: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    environment: str | None = None,
) -> list[Problem]:
    """The errors about shown secrets of a project with one manifest."""
    (root / "manifests").mkdir(exist_ok=True)
    (root / "manifests/a.yaml").write_text(manifest, encoding="utf-8")
    (root / "reconciler.yaml").write_text(settings, encoding="utf-8")
    environ = environ or {}
    try:
        load_manifests(load_config(root, environ, environment), environ, variables)
    except Rejected as rejected:
        found = [problem for problem in rejected.problems if problem.is_error]
        found = [problem for problem in found if problem.code != "reserved-delivery-target"]
        assert {problem.code for problem in found} == {"secret-shown"}, found
        assert all(TOKEN not in f"{problem.text}{problem.remedy}" for problem in found)
        assert all(problem.position is not None for problem in found)
        return found
    return []


@pytest.mark.parametrize(
    "name",
    """
    GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN CI_JOB_TOKEN CI_REGISTRY_PASSWORD ACTIONS_RUNTIME_TOKEN
    ACTIONS_ID_TOKEN_REQUEST_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET ARM_CLIENT_SECRET
    GOOGLE_CREDENTIALS PGPASSWORD DATABASE_URL VAULT_TOKEN NPM_TOKEN SYSTEM_ACCESSTOKEN CLOUDFLARE_API_TOKEN
    """.split(),  # noqa: SIM905
)
def test_a_variable_that_holds_a_key_is_refused_in_a_shown_field(tmp_path: Path, name: str) -> None:
    (found,) = problems(tmp_path, POLICY % f"{{from_env: {name}}}", environ={name: TOKEN})
    assert found.text == f"{name} holds a key or token, and this field is not secret"
    assert str(found.position) == "manifests/a.yaml:3:21"


@pytest.mark.parametrize("name", ["RECONCILER_API_KEY", "RECONCILER_PLAN_KEY", "RECONCILER_SNAPSHOT_KEY"])
def test_a_key_of_this_program_is_refused_as_the_name_of_the_account(tmp_path: Path, name: str) -> None:
    settings = f"{HEAD}platform: {{account: {{from_env: {name}}}}}\n"
    assert problems(tmp_path, POLICY % "a", settings, {name: TOKEN})


@pytest.mark.parametrize(
    ("manifest", "settings"),
    [
        (POLICY % '"${{ var.x }}"', HEAD + "variables: {x: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % '"at ${{ var.x }}."', HEAD + "variables: {x: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % '"${{ lower(var.x) }}"', HEAD + "variables: {x: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % '''"${{ format('{0}', var.x) }}"''', HEAD + "variables: {x: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % "{from_env: ALIAS}", HEAD),
        (POLICY % '"${{ var.x }}"', HEAD + "variables: {x: {from_env: ALIAS}}\n"),
        (POLICY % f'"written: {TOKEN}"', HEAD),
        (POLICY.replace("{description: %s}", "{}"), HEAD + "defaults: {IPPolicy: {spec: {description: *}}}\n"),
        (EACH % "'${{ each.value.d }}'", HEAD),
        ("kind: TunnelGroupBackend\nname: a\nspec: {labels: {a: {from_env: CI_JOB_TOKEN}}}\n", HEAD),
        ("kind: HTTPResponseBackend\nname: a\nspec: {headers: {a: {from_env: CI_JOB_TOKEN}}}\n", HEAD),
        (POLICY % "a", "version: 1\nstack: {from_env: CI_JOB_TOKEN}\n"),
        (POLICY % "a", "version: 1\nstack: {from_env: ALIAS}\n"),
        (POLICY % "a", HEAD + "platform: {account: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % "a", HEAD + "platform: {account: {from_env: ALIAS}}\n"),
        (POLICY % "a", HEAD + "agent: {base_url: {from_env: CI_JOB_TOKEN}}\n"),
        (POLICY % "a", HEAD + "drift: {ignore: [{match: a/b, until: 2026-12-31, reason: {from_env: CI_JOB_TOKEN}}]}\n"),
    ],
)  # fmt: skip
def test_the_value_of_a_key_is_refused_on_each_way_into_a_shown_field(
    tmp_path: Path, manifest: str, settings: str
) -> None:
    manifest, settings = (text.replace("*", "{from_env: CI_JOB_TOKEN}") for text in (manifest, settings))
    assert problems(tmp_path, manifest, settings, {"CI_JOB_TOKEN": TOKEN, "ALIAS": TOKEN})


def test_the_value_of_a_key_is_refused_in_an_environment_and_on_the_command_line(tmp_path: Path) -> None:
    environ = {"CI_JOB_TOKEN": TOKEN}
    (tmp_path / "environments").mkdir()
    file = tmp_path / "environments/prod.yaml"
    for text in (
        "platform: {account: {from_env: CI_JOB_TOKEN}}\n",
        "IPPolicy/a: {spec: {description: {from_env: CI_JOB_TOKEN}}}\n",
        "variables: {x: {from_env: CI_JOB_TOKEN}}\n",
    ):
        file.write_text(text, encoding="utf-8")
        manifest, settings = POLICY % '"${{ var.x }}"', HEAD + "variables: {x: {type: string, default: a}}\n"
        assert problems(tmp_path, manifest, settings, environ, environment="prod"), text
    settings = HEAD + "variables: {x: {type: string, default: a}}\n"
    assert problems(tmp_path, POLICY % '"${{ var.x }}"', settings, environ, {"x": TOKEN})


@pytest.mark.parametrize(
    "path",
    """
    .git/config sub/.git/config .GIT/config
    .env .env.production deploy/prod.env secrets/api secrets/a/b .ssh/config
    .aws/credentials id_ed25519 keys/server.key .netrc .npmrc .pypirc .git-credentials .kube/config
    a.tfstate agent.token state/reconciler.db state/reconciler.db-wal deliveries/token link-to-env link-to-store
    """.split(),  # noqa: SIM905
)
def test_a_file_of_keys_is_refused_in_a_shown_field(tmp_path: Path, path: str) -> None:
    if path.startswith("link"):
        target = ".env" if path.endswith("env") else "state/reconciler.db"
        (tmp_path / "state").mkdir()
        (tmp_path / target).write_text("harmless", encoding="utf-8")
        (tmp_path / path).symlink_to(target)
    else:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("harmless", encoding="utf-8")
    delivering = "kind: TunnelCredential\nname: a\ndeliver: {token: {to_file: ./deliveries/token}}\nspec: {}\n---\n"
    assert problems(tmp_path, delivering + POLICY % f"{{from_file: {path}}}")
    settings = HEAD + f"variables: {{x: {{from_file: {path}}}}}\n"
    assert problems(tmp_path, delivering + POLICY % '"${{ var.x }}"', settings)


def test_a_private_key_is_refused_in_a_file_of_any_name(tmp_path: Path) -> None:
    (tmp_path / "notes.pem").write_text("-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n", "utf-8")
    assert problems(tmp_path, POLICY % "{from_file: notes.pem}")


def test_a_secret_field_may_read_what_a_shown_field_may_not(tmp_path: Path) -> None:
    manifest = "kind: Secret\nname: s\nspec: {vault_id: vault_x, name: s, value: %s}\n"
    (tmp_path / ".env").write_text("harmless", encoding="utf-8")
    environ = {"CI_JOB_TOKEN": TOKEN}
    variables = HEAD + "variables: {x: {from_env: CI_JOB_TOKEN}}\nstore: {from_env: DATABASE_URL}\n"
    environ["DATABASE_URL"] = "postgresql://me:p@localhost/x"
    assert problems(tmp_path, manifest % "{from_env: CI_JOB_TOKEN}", environ=environ) == []
    assert problems(tmp_path, manifest % '"${{ var.x }}"', variables, environ) == []
    assert problems(tmp_path, manifest % "{from_file: .env}", environ=environ) == []


def test_a_short_value_of_a_key_is_not_searched_in_texts(tmp_path: Path) -> None:
    assert problems(tmp_path, POLICY % "the database is postgres", environ={"PGPASSWORD": "postgres"}) == []


def test_the_documented_list_is_the_one_in_use() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for what, patterns in secret_sources.VARIABLES.items():
        assert f"| {what} | {', '.join(f'`{pattern}`' for pattern in patterns)} |" in text
    assert ", ".join(f"`{pattern}`" for pattern in secret_sources.FILES) in text
