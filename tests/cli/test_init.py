from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from msgspec.structs import replace

from reconciler.cli.commands import init
from reconciler.model.value import Secret
from reconciler.operations.authoring import init_project, update_pipelines
from reconciler.operations.authoring.init_project import ProjectChoices
from reconciler.operations.runtime import Runtime
from reconciler.project import pipelines
from reconciler.project.pipeline_updates import State
from tests.harness.golden import compare_golden
from tests.harness.platform import KEY, Sandbox
from tests.harness.project import Output, Shell

WHEEL = "https://packages.example.com/reconciler-0.1.0-py3-none-any.whl"


def read_all(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()
    }


def test_a_new_project_is_valid_and_formatted_and_can_be_planned(shell: Shell, sandbox: Sandbox) -> None:
    result = shell("init", "fresh", "-y", "--example", "--base-url", sandbox.base_url)
    assert result.code == 0
    assert result.err.startswith(
        f"{sandbox.base_url} accepted the API key.\nwrote reconciler.yaml\nwrote manifests/access.yaml\n"
    )
    assert result.out.startswith("Next steps:\n  cd fresh\n")
    assert shell("validate", "--project", "fresh").code == 0
    assert shell("fmt", "--check", "--project", "fresh").code == 0
    assert "Plan: 2 to create" in shell("plan", "--project", "fresh").out


@pytest.mark.parametrize("host", ["github", "gitlab", "none"])
@pytest.mark.parametrize("environments", [(), ("prod",), ("staging", "prod")], ids=len)
def test_the_next_steps_name_what_the_pipelines_need(shell: Shell, host: str, environments: tuple[str, ...]) -> None:
    words = [word for name in environments for word in ("--environment", name)]
    result = shell("init", "-y", "--ci", host, *words)
    assert result.code == 0
    needs = {
        "github": "The workflows require the secrets RECONCILER_READ_KEY and RECONCILER_PLAN_KEY",
        "gitlab": "The jobs require masked variables, which are listed at the top of .gitlab-ci.yml.\n",
    }
    assert [name for name, text in needs.items() if text in result.out] == [host] * (host in needs)
    ordered = "note: pipelines apply a merge in this order: staging, prod; pass --environment to choose another order\n"
    assert (ordered in result.err) is (host in needs and len(environments) > 1)
    assert ("in this order" in result.err) is (ordered in result.err)


def test_an_update_without_pipelines_names_the_option_that_writes_them(shell: Shell) -> None:
    shell("init", "-y", "--ci", "none")
    error = Output(1, "", "error: there are no pipelines; `reconciler init --ci` writes them\n")
    assert shell("init", "--update") == error
    assert shell("init", "--update", "--ci", "none") == error


def test_init_tests_the_key_with_one_request_and_writes_it_nowhere(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("init", "fresh", "-y", "--base-url", sandbox.base_url, "--ci", "github").code == 0
    requests = sandbox.log()
    assert [(request["method"], request["path"]) for request in requests] == [("GET", "/ip_policies?limit=1")]
    assert [path for path, text in read_all(shell.root / "fresh").items() if f"{KEY}\n" in text] == []


def test_nothing_is_written_when_the_key_is_refused(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_API_KEY", "canary" + "OfAnotherAccount")
    refused = shell("init", "fresh", "-y", "--base-url", sandbox.base_url)
    assert refused.code == 6
    assert "canary" not in refused.err
    assert not (shell.root / "fresh").exists()


def test_init_without_a_key_reports_that_none_was_tested(shell: Shell) -> None:
    result = shell("init", "fresh", "-y", "--base-url", "https://api.example.com")
    assert result.code == 0
    assert "note: API key not tested: RECONCILER_API_KEY is not set\n" in result.err


def test_init_does_not_change_existing_files(shell: Shell) -> None:
    before = read_all(shell.root)
    result = shell("init", "-y", "--ci", "gitlab")
    after = read_all(shell.root)
    assert {path: after[path] for path in before} == before
    assert "kept reconciler.yaml, which already exists\n" in result.err
    assert after[".gitlab-ci.yml"].partition("\n")[2] == pipelines.read_pipelines("gitlab")[".gitlab-ci.yml"]
    shell("init", "-y", "--ci", "gitlab")
    assert read_all(shell.root) == after


def test_an_update_shows_the_difference_and_replaces_no_edited_file(shell: Shell) -> None:
    shell("init", "-y", "--ci", "gitlab")
    assert shell("init", "--update") == Output(0, "", "up to date: .gitlab-ci.yml\n")
    file = shell.root / ".gitlab-ci.yml"
    now = file.read_text()
    file.write_text(now.replace("timeout", "patience").replace("stages: [plan, apply, drift]", "stages: [plan, apply]"))
    assert shell("init", "--update", "--check") == Output(0, "", "up to date, with your edits: .gitlab-ci.yml\n")
    header, _, body = now.partition("\n")
    file.write_text(body.replace("[plan, apply, drift]", "[plan, apply]"))
    check = shell("init", "--update", "--check")
    assert check.code == 2
    assert f"+{header}\n" in check.out
    assert "-stages: [plan, apply]\n+stages: [plan, apply, drift]\n" in check.out
    kept = shell("init", "--update")
    assert kept.code == 1
    assert "error: .gitlab-ci.yml was edited, and is kept; apply what you need of the difference by hand" in kept.err
    file.write_text(body)
    assert shell("init", "--update") == Output(
        0,
        f"--- a/.gitlab-ci.yml\n+++ b/.gitlab-ci.yml\n@@ -1,3 +1,4 @@\n+{header}\n"
        + "".join(f" {line}\n" for line in body.splitlines()[:3]),
        "updated: .gitlab-ci.yml\n",
    )
    assert file.read_text() == now
    assert shell("init", "--update", "--stack", "x").err == "error: --update cannot be combined with --stack\n"
    assert shell("init", "--check", "-y").code == 64


def test_no_example_is_written_into_an_existing_project(shell: Shell) -> None:
    for name in ("begun/reconciler.yaml", "written/manifests/deep/all.yml"):
        shell.write(name, "")
        folder = name.partition("/")[0]
        assert shell("init", folder, "-y", "--example").code == 0
        assert not (shell.root / folder / "manifests/access.yaml").exists()


def test_missing_entries_of_a_gitignore_are_named(shell: Shell) -> None:
    shell.write("fresh/.gitignore", "*.pyc\nstate\n.env\n/agent.yml\n")
    result = shell("init", "fresh", "-y")
    assert "kept .gitignore, which already exists\n" in result.err
    assert "note: .gitignore does not list /secrets/ *.key /.reconciler/; " in result.err
    assert "does not list" not in shell("init", "other", "-y").err


def test_other_patterns_of_a_gitignore_are_recognized(shell: Shell) -> None:
    shell.write("fresh/.gitignore", "state/*\n/secrets/**\n.env*\n*.key\n.reconciler\n")
    result = shell("init", "fresh", "-y")
    assert "note: .gitignore does not list /agent.yml; " in result.err
    (shell.root / "other/.gitignore").mkdir(parents=True)
    result = shell("init", "other", "-y")
    assert (result.code, result.out.splitlines()[0]) == (0, "Next steps:")


def test_git_ignores_all_outputs_of_documented_commands_and_pipelines(shell: Shell) -> None:
    root = Path(__file__).parents[2]
    files = [
        root / "README.md",
        *root.glob("docs/*"),
        *root.rglob("examples/gitops/**/*"),
        *root.glob("reconciler/cli/**/*.py"),
    ]
    pattern = re.compile(r"(?:-out |--format \w+=)([\w./-]+\.\w+)")
    written = {name for file in files if file.is_file() for name in pattern.findall(file.read_text(encoding="utf-8"))}
    written -= {"snapshot.pub", "ca.pem"}  # public: half of a key, and a certificate
    assert {"secrets/agent.yml", "secrets/snapshot.key", ".reconciler/plan.sarif", ".reconciler/drift.md"} <= written
    assert shell("init", "fresh", "-y").code == 0
    subprocess.run(["git", "init", "-q"], cwd=shell.root / "fresh", check=True)
    written |= {"agent.yml", "snapshot.key"}
    command = ["git", "check-ignore", *sorted(written)]
    ignored = subprocess.run(command, cwd=shell.root / "fresh", capture_output=True, text=True, check=True)
    assert set(ignored.stdout.split()) == written


def test_a_symbolic_link_to_a_folder_is_not_written_through(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "fresh" / "manifests").symlink_to(tmp_path / "elsewhere")
    refused = shell("init", "fresh", "-y", "--example")
    assert refused.code == 1
    assert "manifests/access.yaml leads through a symlink" in refused.err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert read_all(tmp_path / "fresh") == {}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--stack", "a b"), "--stack: is not a valid stack name"),
        (("--base-url", "http://api.example.com"), "--base-url: would send the API key unencrypted"),
        (("--base-url", "nonsense"), "--base-url: is not a URL"),
        (("--package", "--upgrade"), "--package: is not a package"),
        (("--package", "one\ntwo"), "--package: is not a package"),
        (("--package", "https://[1/x.whl"), "--package: is not a package"),
        (("--package", "https://example.com/$X.whl"), "--package: contains $, which the CI system would expand"),
        (("--package", "https://me:word@example.com/x.whl"), "--package: would write a user or password"),
        (("--package", "a @ git+https://token@example.com/x"), "--package: would write a user or password"),
    ],
)
def test_an_invalid_flag_is_refused_before_anything_is_written(
    shell: Shell, flags: tuple[str, str], message: str
) -> None:
    refused = shell("init", "fresh", "-y", *flags)
    assert refused.code == 64
    assert refused.err.startswith(f"error: {message}")
    assert not (shell.root / "fresh").exists()


@pytest.mark.parametrize("name", ["0123", "true", "1.5", "no-1", "null", "a.b_c-D"])
def test_the_name_of_a_stack_is_read_back_unchanged(shell: Shell, name: str) -> None:
    shell("init", "fresh", "-y", "--stack", name)
    assert yaml.safe_load((shell.root / "fresh" / "reconciler.yaml").read_text())["stack"] == name


def test_the_public_platform_needs_no_address(shell: Shell) -> None:
    assert shell("init", "fresh", "-y", "--profile", "ngrok", "--no-check").code == 0
    written = (shell.root / "fresh" / "reconciler.yaml").read_text()
    assert "  profile: ngrok\n  api_key:" in written
    assert shell("validate", "--project", "fresh").code == 0


@pytest.mark.parametrize(
    ("file", "text", "first"),
    [
        (".git/config", '[remote "origin"]\n\turl = git@github.com:octo/infra.git\n', ".github/workflows/plan.yml"),
        (".git/config", '[remote "origin"]\n\turl = https://gitlab.example.com/x.git\n', ".gitlab-ci.yml"),
        (".github/CODEOWNERS", "* @octo\n", ".github/workflows/plan.yml"),
    ],
)
def test_the_code_host_is_detected_from_the_repository(shell: Shell, file: str, text: str, first: str) -> None:
    shell.write(f"fresh/{file}", text)
    shell("init", "fresh", "-y")
    assert (shell.root / "fresh" / first).exists()


@pytest.mark.parametrize("entry", ["folder", "file"])
@pytest.mark.parametrize("host", pipelines.HOSTS)
def test_no_pipelines_are_written_below_the_root_of_a_repository(shell: Shell, host: str, entry: str) -> None:
    """Code hosts would not read them. A submodule and a worktree have a file `.git`."""
    shell.write("outer/.git/HEAD" if entry == "folder" else "outer/.git", "")
    shell.write("outer/a/b/.github/CODEOWNERS", "* @octo\n")
    root = shell.root.resolve() / "outer"
    for folder in ("outer/infra", "outer/a/b"):
        before = read_all(shell.root)
        refused = shell("init", folder, "-y", "--ci", host)
        assert (refused.code, refused.err) == (
            64,
            "error: --ci: pipelines are read at the root of a Git repository only, and "
            f"{shell.root.resolve() / folder} is below the root of {root}; run init in {root}, or without --ci\n",
        )
        assert read_all(shell.root) == before
        assert shell("init", folder, "-y").code == 0
        written = read_all(shell.root).keys() - before.keys()
        assert not [path for path in written if re.search(r"\.git(hub|lab)", path)]
    assert shell("init", "outer", "-y", "--ci", host).code == 0


def test_pipelines_are_written_in_a_repository_within_another(shell: Shell) -> None:
    shell.write("outer/.git/HEAD", "")
    shell.write("outer/inner/.git/HEAD", "")
    assert shell("init", "outer/inner", "-y", "--ci", "github").code == 0
    assert (shell.root / "outer/inner/.github/workflows/apply.yml").exists()


def test_init_without_a_terminal_requires_auto_approve(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = shell("init", "fresh")
    assert refused.code == 64
    assert refused.err == "error: stdin is not a terminal; pass --auto-approve to run non-interactively\n"


@pytest.mark.usefixtures("over_socket")
def test_init_prompts_with_proposals_at_a_terminal(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.post("/bot_users", {"name": "deployer"})
    monkeypatch.delenv("RECONCILER_API_KEY")
    monkeypatch.delenv("RECONCILER_BASE_URL")
    terminal, other_end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "reconciler", "init", "fresh", "--profile", "specification"],
        cwd=shell.root,
        stdin=other_end,
        stdout=subprocess.DEVNULL,
        stderr=other_end,
        env={**os.environ, "TERM": "dumb"},
    ) as process:
        os.close(other_end)
        output = ""
        for question, answer in (
            ("[fresh]:", "shop"),
            ("Base URL of the API:", sandbox.base_url),
            ("[none]:", "gitlab"),
            ("(leave empty to set later)", WHEEL),
            ("API key", KEY),
        ):
            output += _until(terminal, question)
            os.write(terminal, f"{answer}\n".encode())
        output += _until(terminal, "the account's existing objects? [y/N]: ")
        os.write(terminal, b"y\n")
    os.close(terminal)
    assert process.returncode == 0
    assert "objects? [y/N]: " in output
    assert f"{sandbox.base_url} accepted the API key." in output
    assert yaml.safe_load((shell.root / "fresh" / "reconciler.yaml").read_text())["stack"] == "shop"
    pipeline = yaml.safe_load((shell.root / "fresh" / ".gitlab-ci.yml").read_text())
    assert pipeline["variables"]["RECONCILER_PACKAGE"] == f"reconciler[postgres] @ {WHEEL}"
    assert "name: deployer" in (shell.root / "fresh" / "manifests" / "bot-user.yaml").read_text()


def _until(terminal: int, text: str) -> str:
    output = ""
    while text not in output:
        ready, _, _ = select.select([terminal], [], [], 30)
        assert ready, f"{text!r} was not prompted; output: {output}"
        output += os.read(terminal, 1024).decode()
    return output


def test_flags_that_an_existing_project_ignores_are_reported(shell: Shell) -> None:
    result = shell("init", "-y", "--no-check", "--base-url", "https://two.example.com")
    assert result.code == 0
    assert "note: reconciler.yaml already exists; ignoring --base-url\n" in result.err


def test_pipelines_of_an_existing_project_take_its_stack_and_platform(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECONCILER_BASE_URL")
    monkeypatch.setenv("API", sandbox.base_url)
    shell.write("fresh/reconciler.yaml", "version: 1\nstack: shop\nplatform: {base_url: {from_env: API}}\n")
    result = shell("init", "fresh", "-y", "--environment", "prod")
    assert result.err.startswith(f"{sandbox.base_url} accepted the API key.\nkept reconciler.yaml, which")
    assert "set base_url" not in result.out
    assert (shell.root / "fresh/environments/prod.yaml").read_text().endswith("stack: shop-prod\n")
    monkeypatch.delenv("API")
    result = shell("init", "fresh", "-y")
    assert result.err.startswith("note: API key not tested: no base URL could be read from reconciler.yaml\nkept ")


def test_after_init_and_import_a_plan_only_adopts(shell: Shell, sandbox: Sandbox) -> None:
    policy = sandbox.post("/ip_policies", {"description": "by hand"})
    sandbox.post("/ip_policy_rules", {"ip_policy_id": policy["id"], "cidr": "192.0.2.0/24", "action": "allow"})
    assert shell("init", "fresh", "-y", "--base-url", sandbox.base_url).code == 0
    assert [path.name for path in (shell.root / "fresh/manifests").iterdir()] == [".gitkeep"]
    result = shell("import", "--project", "fresh")
    assert (result.code, result.err) == (0, "")
    assert shell("plan", "--project", "fresh", "--adopt", "--format", "json=plan.json").code == 0
    changes = json.loads((shell.root / "plan.json").read_text())["changes"]
    assert {change["action"] for change in changes} == {"adopt"}
    assert {"IPPolicy", "IPPolicyRule"} <= {change["address"].partition("/")[0] for change in changes}


def test_a_new_project_without_manifests_plans_nothing(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("init", "fresh", "-y", "--base-url", sandbox.base_url).code == 0
    for command in ("validate", "plan", "drift"):
        assert shell(command, "--project", "fresh").code == 0


def installs(shell: Shell, host: str) -> str:
    """The package that the pipelines of the new project install."""
    written = yaml.safe_load((shell.root / "fresh" / pipelines.PACKAGE_IN[host]).read_text())
    package = (
        written["variables"]["RECONCILER_PACKAGE"] if host == "gitlab" else written["inputs"]["package"]["default"]
    )
    assert isinstance(package, str)
    return package


@pytest.mark.parametrize("host", pipelines.HOSTS)
@pytest.mark.parametrize(
    ("package", "written"),
    [
        (WHEEL, f"reconciler[postgres] @ {WHEEL}"),
        ("git+https://example.com/r@0f0f", "reconciler[postgres] @ git+https://example.com/r@0f0f"),
        ("git+ssh://git@example.com/r@0f0f", "reconciler[postgres] @ git+ssh://git@example.com/r@0f0f"),
        ("reconciler @ https://example.com/r.whl", "reconciler[postgres] @ https://example.com/r.whl"),
        ("reconciler[telemetry] @ https://a.example.com/r.whl", "reconciler[telemetry,postgres] @ https://a.example.com/r.whl"),
        ("ours-reconciler~=0.1", "ours-reconciler[postgres]~=0.1"),
        ("reconciler[postgres]==0.1.0", "reconciler[postgres]==0.1.0"),
        ("wheels/reconciler-0.1.0-py3-none-any.whl", "wheels/reconciler-0.1.0-py3-none-any.whl[postgres]"),
    ],
)  # fmt: skip
def test_the_pipelines_install_the_package_with_the_extra_for_their_store(
    shell: Shell, host: str, package: str, written: str
) -> None:
    result = shell("init", "fresh", "-y", "--ci", host, "--package", package)
    assert result.code == 0
    assert installs(shell, host) == written
    assert ("is installed from a package index: set " in result.out) == ("~=" in package or "==" in package)


@pytest.mark.parametrize("host", pipelines.HOSTS)
def test_pipelines_without_a_package_install_none_and_init_reports_it(shell: Shell, host: str) -> None:
    result = shell("init", "fresh", "-y", "--ci", host)
    assert installs(shell, host) == ""
    assert "The pipelines have no package to install yet: set " in result.out
    again = shell("init", "fresh", "-y", "--ci", host, "--package", WHEEL)
    assert installs(shell, host) == ""
    assert f"note: {pipelines.PACKAGE_IN[host]} already exists; ignoring --package" in again.err
    assert "The pipelines have no package to install yet" in again.out


def test_environments_are_created_with_a_job_for_each_in_the_pipelines(shell: Shell, sandbox: Sandbox) -> None:
    words = ("--base-url", sandbox.base_url, "--stack", "shop", "--example", "--ci", "github")
    result = shell("init", "fresh", "-y", *words, "--environment", "staging", "--environment", "prod")
    assert "wrote environments/staging.yaml\nwrote environments/prod.yaml\n" in result.err
    assert "note: pipelines apply a merge in this order: staging, prod; " in result.err
    assert "RECONCILER_API_KEY in\nthe environments staging and prod; " in result.out
    assert shell("validate", "--project", "fresh").code == 0
    assert shell("fmt", "--check", "--project", "fresh").code == 0
    assert "2 to create" in shell("plan", "--project", "fresh", "--env", "prod").out
    assert "stack: shop-staging\n" in (shell.root / "fresh/environments/staging.yaml").read_text()


def test_the_environments_of_a_project_are_applied_with_production_last(shell: Shell) -> None:
    for name in ("live", "dev", "staging"):
        shell.write(f"environments/{name}.yaml", "{}\n")
    result = shell("init", "-y", "--ci", "gitlab")
    assert "in this order: dev, staging, live; " in result.err
    assert "kept environments/dev.yaml, which already exists\n" in result.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--environment", "a b"), "--environment: 'a b' is not a valid environment name; use up to 63 letters"),
        (("--environment", "a", "--environment", "a"), "--environment: names an environment twice"),
        (("--approvers", "octo"), "--approvers: is not a list of code owners; write users, teams or mail addresses"),
        (("--approvers", "@a\n@b"), "--approvers: is not a list of code owners"),
    ],
)
def test_an_environment_or_approver_that_cannot_be_written_is_an_error(
    shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    result = shell("init", "fresh", "-y", "--ci", "github", *words)
    assert (result.code, f"error: {problem}" in result.err) == (64, True), result
    assert not (shell.root / "fresh").exists()


@pytest.mark.parametrize(("host", "place"), [("github", ".github/CODEOWNERS"), ("gitlab", ".gitlab/CODEOWNERS")])
def test_the_code_owners_of_approvals_are_written_and_reported(shell: Shell, host: str, place: str) -> None:
    result = shell("init", "fresh", "-y", "--ci", host, "--approvers", "@octo/platform sec@example.com")
    assert f"note: {place} names @octo/platform sec@example.com as reviewers of approvals.yaml\n" in result.err
    assert "\n/approvals.yaml @octo/platform sec@example.com\n" in (shell.root / "fresh" / place).read_text()
    result = shell("init", "other", "-y", "--ci", host)
    assert f"note: {place} does not name the reviewers of approvals.yaml yet; edit it\n" in result.err
    written = (shell.root / "other" / place).read_text()
    assert all(line.startswith("#") for line in written.splitlines())
    shell.write("third/CODEOWNERS", "* @alice\n")
    result = shell("init", "third", "-y", "--ci", host)
    assert "note: CODEOWNERS decides who reviews approvals.yaml; check that it contains: /approvals.yaml " in result.err
    assert not (shell.root / "third" / place).exists()


@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_files_that_can_loosen_rules_have_code_owners_and_risks_need_approval(shell: Shell, host: str) -> None:
    shell("init", "fresh", "-y", "--ci", host, "--approvers", "@octo/platform", "--environment", "prod")
    owned = (shell.root / f"fresh/.{host}/CODEOWNERS").read_text()
    for path in ("/approvals.yaml", "/reconciler.yaml", "/environments/", "/policies/", "/fleet.yaml"):
        assert f"\n{path} @octo/platform\n" in owned
    settings = (shell.root / "fresh/reconciler.yaml").read_text()
    assert "  require_approval: [widens_access, locks_out, irreversible, runs_command]\n" in settings
    assert shell("validate", "--project", str(shell.root / "fresh")).code == 0
    shell.write("second/CODEOWNERS", "* @alice\n")
    shell.write("second/reconciler.yaml", "stack: prod\npolicies: [rules]\n")
    result = shell("init", "second", "-y", "--ci", host)
    assert "/rules/ @OWNER/TEAM" in result.err
    assert "/CODEOWNERS @OWNER/TEAM" in result.err


def test_approvers_without_pipelines_are_reported_as_ignored(shell: Shell) -> None:
    ignored = "note: no pipelines are written; ignoring --approvers\n"
    for number, words in enumerate(((), ("--approvers", "@octo/platform"))):
        assert (ignored in shell("init", f"f{number}", "-y", "--ci", "none", *words).err) == bool(words)


def test_the_base_url_is_that_of_the_flag_then_of_the_environment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = "https://one.example.com", "https://two.example.com"
    for number, (variable, flag, expected) in enumerate(
        [("", (), ""), (one, (), one), ("", ("--base-url", two), two), (one, ("--base-url", two), two)]
    ):
        monkeypatch.setenv("RECONCILER_BASE_URL", variable)
        result = shell("init", f"g{number}", "-y", "--no-check", "--profile", "specification", *flag)
        assert result.code == 0
        written = (shell.root / f"g{number}/reconciler.yaml").read_text()
        assert [url for url in (one, two) if url in written] == ([expected] if expected else []), written


def test_a_package_without_pipelines_is_reported_as_ignored(shell: Shell) -> None:
    result = shell("init", "fresh", "-y", "--ci", "none", "--package", WHEEL)
    assert "note: no pipelines are written; ignoring --package\n" in result.err


@pytest.mark.parametrize(
    ("direct_url", "package"),
    [
        (
            {
                "url": "https://example.com/r",
                "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "0f"},
            },
            "reconciler[postgres] @ git+https://example.com/r@0f",
        ),
        (
            {"url": "https://example.com/r", "subdirectory": "a/b", "vcs_info": {"vcs": "git", "commit_id": "0f"}},
            "reconciler[postgres] @ git+https://example.com/r@0f#subdirectory=a/b",
        ),
        (
            {"url": WHEEL, "archive_info": {"hash": "sha256=0f", "hashes": {"sha256": "0f"}}},
            f"reconciler[postgres] @ {WHEEL}#sha256=0f",
        ),
        ({"url": WHEEL, "archive_info": {}}, f"reconciler[postgres] @ {WHEEL}"),
        ({"url": "file:///home/me/r", "dir_info": {"editable": True}}, ""),
        ({"url": "file:///home/me/r.whl", "archive_info": {}}, ""),
        ({"url": "https://${TOKEN}@example.com/r", "vcs_info": {"vcs": "git", "commit_id": "0f"}}, ""),
        ({"url": "https://example.com/r", "vcs_info": None}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_url_of_the_installed_package_is_proposed(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: object, package: str
) -> None:
    info = tmp_path / "site" / "reconciler-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: reconciler\nVersion: 0.1.0\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert shell("init", "fresh", "-y", "--ci", "gitlab").code == 0
    assert installs(shell, "gitlab") == package


def test_the_next_steps_can_be_copied(shell: Shell) -> None:
    _, first, *_, export, _, _, _ = shell("init", "wei rd/ünï", "-y").out.splitlines()
    assert first == "  cd 'wei rd/ünï'"
    assert export == "  export RECONCILER_API_KEY='<your key>'"


def test_git_ignores_the_schemas(shell: Shell) -> None:
    assert shell("init", "fresh", "-y", "--base-url", "http://127.0.0.1:1", "--no-check").code == 0
    folder = shell.root / "fresh"
    assert (folder / ".reconciler/schemas/manifest.json").exists()
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "add", "."], check=True)
    kept = subprocess.run(["git", "-C", folder, "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in kept if name.startswith(".reconciler")] == []
    assert sum((folder / name).stat().st_size for name in kept) < 10_000


def test_a_committed_symlink_leads_no_output_out_of_the_project(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (shell.root / ".reconciler").symlink_to(tmp_path / "elsewhere")
    refused = shell("schema", "--all", ".reconciler/schemas")
    assert (refused.code, refused.err) == (
        1,
        "error: .reconciler: is a symlink; delete it, so that a folder is created\n",
    )
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- whole outputs

Files = dict[str, str]
EXISTING = {"reconciler.yaml": "version: 1\nstack: shop\nplatform: {base_url: https://api.example.com}\n"}
OWNERS = {"CODEOWNERS": "* @octo/all\n"}
WORKFLOW = {".github/workflows/reconciler-plan.yml": "on: push\n", ".gitignore": "*.tmp\n"}
TWO = ("--environment", "staging", "--environment", "prod")
RUNS: dict[str, tuple[Files, tuple[str, ...]]] = {
    "nothing but defaults": ({}, ()),
    "in another folder": (
        {},
        ("my project", "--example", "--ci", "none", "--approvers", "@octo/ops", "--package", WHEEL),
    ),
    "an address and a stack": ({}, ("--base-url", "https://api.example.com", "--stack", "shop")),
    "the public platform": ({}, ("--profile", "ngrok", "--no-check")),
    "github": ({}, ("--ci", "github", "--approvers", "@octo/ops", *TWO)),
    "github, with a package of an index": ({}, ("--ci", "github", "--package", "reconciler==0.1.0")),
    "github, where all exists": (EXISTING | OWNERS | WORKFLOW, ("--ci", "github", "--stack", "x", "--package", WHEEL)),
    "gitlab, with owners": (OWNERS, ("--ci", "gitlab", "--package", WHEEL, "--approvers", "@octo/ops")),
    "gitlab": ({".gitlab-ci.yml": "stages: []\n"}, ("--ci", "gitlab", "--package", WHEEL, *TWO)),
    "wrong choices": ({}, ("--stack", "a b", "--base-url", "x", "--environment", "a/b", "--approvers", "me")),
}


def test_init_prints_and_writes_the_same_as_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RECONCILER_API_KEY", "RECONCILER_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pipelines, "find_install_source", lambda: "")
    pages = []
    for number, (title, (files, words)) in enumerate(RUNS.items()):
        shell = Shell(tmp_path / str(number) / "fresh", capsys)
        shell.root.mkdir(parents=True)
        monkeypatch.chdir(shell.root)
        for path, text in files.items():
            shell.write(path, text)
        result = shell("init", *words, "-y")
        written = [path for path in read_all(shell.root) if path not in files]
        pages.append(
            f"# {title}: {shlex.join(words)}\n\nexit {result.code}\n\n{result.out}\n{result.err}\n"
            + "".join(f"+ {path}\n" for path in written)
        )
    lines = (line for line in "\n".join(pages).splitlines(keepends=True) if ".reconciler/schemas/" not in line)
    compare_golden(Path(__file__).with_name("init.txt"), "".join(lines))


@pytest.mark.parametrize("is_check", [True, False])
@pytest.mark.parametrize("states", [*[(state,) for state in State], (State.CHANGED, State.OUTDATED), ()])
def test_an_update_has_a_line_for_each_pipeline_and_the_exit_code_of_the_worst(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, states: tuple[State, ...], is_check: bool
) -> None:
    found = [update_pipelines.PipelineUpdate(f"{state}.yml", state, f"diff of {state}\n") for state in states]
    monkeypatch.setattr(update_pipelines, "update_pipelines", lambda *_, **__: found)
    result = shell("init", "--update", "--ci", "github", *(["--check"] if is_check else []))
    lines = {
        State.CURRENT: "up to date: current.yml",
        State.EDITED: "up to date, with your edits: edited.yml",
        State.OUTDATED: f"{'outdated' if is_check else 'updated'}: outdated.yml",
        State.CHANGED: "error: changed.yml was edited, and is kept; apply what you need of the difference by hand, "
        "with its first line, or delete the file and run `reconciler init`",
        State.MISSING: "note: missing.yml does not exist; `reconciler init --ci github` writes it",
    }
    assert result.err.splitlines() == [lines[state] for state in states]
    assert result.out == "".join(f"diff of {state}\n" for state in states)
    waits = State.CHANGED in states or (is_check and State.OUTDATED in states)
    assert result.code == (0 if not waits else 2 if is_check else 1)


PROMPTS = {
    "stack": "Stack name, unique in the account",
    "profile": "API dialect",
    "base_url": "Base URL of the API",
    "host": "CI pipelines for",
    "package": "Package to install in pipelines: URL of a wheel, or git+https://…@commit (leave empty to set later)",
}
DEFAULTS = ProjectChoices("shop", "specification", None, "none", "", (), "")


@pytest.mark.parametrize(
    ("fixed", "is_new", "answers"),
    [
        ({}, True, {"stack": "web", "profile": "specification", "base_url": "https://a.example.com", "host": "none"}),
        ({}, True, {"stack": "web", "profile": "ngrok", "host": "github", "package": " here "}),
        ({}, False, {"host": "gitlab", "package": WHEEL}),
        ({"stack": "web", "base_url": "https://b.example.com"}, True, {"profile": "specification", "host": "none"}),
        ({"profile": "ngrok", "host": "github"}, True, {"stack": "web", "package": ""}),
        ({"host": "github", "package": WHEEL}, False, {}),
    ],
)
def test_a_choice_that_no_option_fixed_is_prompted(
    monkeypatch: pytest.MonkeyPatch, fixed: dict[str, Any], is_new: bool, answers: dict[str, str]
) -> None:
    defaults = replace(DEFAULTS, **fixed)
    asked: dict[str, str] = {}

    def prompt(question: str, *, default: str | None, err: bool, **more: Any) -> str:
        assert err, "standard output is for results"
        (name,) = (name for name, text in PROMPTS.items() if text == question)
        assert default == getattr(defaults, name)
        assert more == {
            "profile": {"type": more.get("type")},
            "host": {"type": more.get("type")},
            "package": {"show_default": bool(default)},
        }.get(name, {})
        asked[name] = answers[name]
        return answers[name]

    monkeypatch.setattr(click, "prompt", prompt)
    chosen = init._prompt(defaults, {*fixed.values()}, is_new=is_new)
    assert asked == answers
    assert chosen == replace(defaults, **{name: text.strip() for name, text in answers.items()})


@pytest.mark.parametrize(
    ("address", "variable", "answer", "is_new", "is_interactive", "line", "key"),
    [
        (None, "", "", True, True, "note: API key not tested: no base URL", None),
        (None, "k", "", False, True, "note: API key not tested: no base URL could be read from reconciler.yaml", None),
        ("https://a", None, "", True, True, "note: API key not tested: RECONCILER_API_KEY is not set", None),
        ("https://a", None, "typed", True, True, "https://a accepted the API key.", "typed"),
        ("https://a", None, "typed", True, False, "note: API key not tested: RECONCILER_API_KEY is not set", None),
        ("https://a", "set", "typed", True, True, "https://a accepted the API key.", "set"),
        ("https://a", "", "typed", True, True, "note: API key not tested: RECONCILER_API_KEY is not set", None),
    ],
)
def test_a_key_is_that_of_the_environment_or_is_prompted(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str | None,
    variable: str | None,
    answer: str,
    is_new: bool,
    is_interactive: bool,
    line: str,
    key: str | None,
) -> None:
    tried = []

    async def try_key(base_url: str, profile: str, key: Secret, runtime: Runtime) -> None:
        tried.append((base_url, profile, key.reveal()))

    def prompt(question: str, **more: Any) -> str:
        assert (question, more) == (
            "API key to test (not stored; leave empty to skip)",
            {"default": "", "hide_input": True, "err": True},
        )
        return answer

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(init_project, "try_key", try_key)
    environ = {} if variable is None else {"RECONCILER_API_KEY": variable}
    choices = replace(DEFAULTS, base_url=address)
    found = init._try_key(choices, Runtime(environ=environ), is_new=is_new, is_interactive=is_interactive)
    assert found == key
    assert tried == ([(address, "specification", key)] if key else [])
    assert capsys.readouterr().err == f"{line}\n"
