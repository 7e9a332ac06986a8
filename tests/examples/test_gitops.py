"""The pipelines of `examples/gitops`: linted, and their steps run against a sandbox and a code host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from jsonschema.validators import validator_for

from reconciler.project import pipelines
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import Change, Forge, Run
from tests.examples.repository import PACKAGE, PLAN_KEY, Clone, gitlab, good, merge_as, on_push
from tests.examples.workflows import Runner, read
from tests.harness.platform import KEY, Sandbox

pytestmark = pytest.mark.usefixtures("over_socket")

ROOT = Path(__file__).parents[2]
GITOPS = ROOT / "examples" / "gitops"
WORKFLOWS = sorted((GITOPS / "github/.github/workflows").glob("*.yml"))
ACTIONS = sorted((GITOPS / "github/.github/actions").glob("*/action.yml"))
GITLAB = GITOPS / "gitlab/.gitlab-ci.yml"
PINNED = {
    *("actions/checkout", "actions/setup-python", "actions/upload-artifact", "actions/download-artifact"),
    "github/codeql-action/upload-sarif",
}
ENVIRONMENTS = [(), ("staging", "production"), ("1.dev", "QA", "prod")]


# --- lint -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environments", ENVIRONMENTS, ids=len)
@pytest.mark.parametrize("host", pipelines.HOSTS)
def test_a_pipeline_matches_the_schema_of_its_code_host(host: str, environments: tuple[str, ...]) -> None:
    for path, text in pipelines.read_pipelines(host, "", environments).items():
        schema = "gitlab-ci" if host == "gitlab" else "github-actions" if "/actions/" in path else "github-workflows"
        vendored = files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
        checked = json.loads(vendored.read_text())
        document = yaml.safe_load(text)
        if True in document:
            document["on"] = document.pop(True)  # YAML 1.1, which GitHub does not read
        validator_for(checked)(checked).validate(document)
        assert "for each environment:" not in text
        assert "previous" not in text


@pytest.mark.parametrize("file", [*WORKFLOWS, GITLAB], ids=lambda file: file.stem)
def test_the_pipelines_to_copy_are_those_of_a_project_without_environments(file: Path) -> None:
    host = "gitlab" if file == GITLAB else "github"
    written = pipelines.read_pipelines(host)[file.relative_to(GITOPS / host).as_posix()]
    copied = read(file)
    assert json.dumps(yaml.safe_load(written), default=str) == re.sub(
        r" *# (for each environment:|end of the environments)\\n", "", json.dumps(copied, default=str)
    )


@pytest.mark.parametrize("environments", ENVIRONMENTS, ids=len)
def test_environments_are_applied_one_after_the_other_under_the_rules_of_the_host(
    environments: tuple[str, ...],
) -> None:
    names = list(environments or ("production",))
    jobs = yaml.safe_load(pipelines.read_pipelines("github", "", environments)[".github/workflows/apply.yml"])["jobs"]
    assert [job["environment"] for job in jobs.values()] == names
    assert [job.get("needs") for job in jobs.values()] == [None, *([job] for job in list(jobs)[:-1])]
    document = yaml.safe_load(pipelines.read_pipelines("gitlab", "", environments)[".gitlab-ci.yml"])
    jobs = {name: job for name, job in document.items() if name.startswith("apply-")}
    assert [job["environment"] for job in jobs.values()] == names
    assert [job.get("needs") for job in jobs.values()] == [None, *([job] for job in list(jobs)[:-1])]
    assert [job["rules"][0].get("when") for job in jobs.values()] == [None, *["manual"] * (len(jobs) - 1)]


@pytest.mark.parametrize("environments", ENVIRONMENTS, ids=len)
def test_merges_into_the_default_branch_are_applied_whatever_its_name(environments: tuple[str, ...]) -> None:
    """A filter of GitHub cannot name the default branch, so each job does; a skipped run delays no other run."""
    for host in pipelines.HOSTS:
        for path, text in pipelines.read_pipelines(host, "", environments).items():
            assert not re.search(r"\b(main|master)\b", text), path
    files = pipelines.read_pipelines("github", "", environments)
    apply = yaml.safe_load(files[".github/workflows/apply.yml"])
    assert apply[True] == {"push": {"branches": ["**"]}}  # `on`; no tags
    default = "github.event.repository.default_branch"
    assert {job["if"] for job in apply["jobs"].values()} == {f"github.ref_name == {default}"}
    group = {"group": "apply-${{ github.ref }}", "cancel-in-progress": False}
    assert apply["concurrency"] == {**group, "queue": "max"}  # `single`, the default, cancels a merge that waits
    (snapshot,) = yaml.safe_load(files[".github/workflows/snapshot.yml"])["jobs"].values()
    head = "github.event.workflow_run.head_branch"
    assert snapshot["if"] == f"github.event_name != 'workflow_run' || {head} == {default}"


def test_no_pipeline_approves_anything_by_a_flag() -> None:
    assert [file for file in GITOPS.rglob("*") if file.is_file() and "--allow" in file.read_text()] == []


def test_the_cron_job_matches_the_schema_of_kubernetes() -> None:
    schema = json.loads((Path(__file__).parent / "schemas/kubernetes-1.34.json").read_text())
    for document in yaml.safe_load_all((GITOPS / "kubernetes/cronjob.yaml").read_text()):
        jsonschema.Draft202012Validator({"$ref": f"#/$defs/{document['kind']}", **schema}).validate(document)


@pytest.mark.parametrize("file", [*WORKFLOWS, *ACTIONS], ids=lambda file: file.stem)
def test_foreign_actions_are_github_s_own_and_pinned_by_commit_and_version(file: Path) -> None:
    for line in re.findall(r"uses: (.*)", file.read_text()):
        if not line.startswith("./"):
            found = re.fullmatch(r"([\w/-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
            assert found is not None, line
            assert found[1] in PINNED


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_only_the_permissions_of_its_jobs(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {}
    granted = {name: set(job["permissions"].items()) for name, job in workflow["jobs"].items()}
    writing = {(name, what) for name, permissions in granted.items() for what, how in permissions if how == "write"}
    needed = {
        "plan": {("plan", "pull-requests"), ("plan", "security-events")},
        "drift": {("drift", "issues")},
    }
    assert writing == needed.get(file.stem, set())


def test_only_apply_has_the_key_that_can_write() -> None:
    for file in WORKFLOWS:
        assert ("secrets.RECONCILER_API_KEY" in file.read_text()) == (file.stem == "apply")
    assert read(WORKFLOWS[0])["jobs"]["apply-production"]["environment"] == "production"


def test_no_job_but_apply_needs_a_secret_that_a_manifest_names() -> None:
    commands = re.compile(r"reconciler (?:plan|drift|snapshot) [^\n]*--(?!project)")
    for file in (*WORKFLOWS, *(GITOPS / name for name in ("gitlab/.gitlab-ci.yml", "cron/drift.sh"))):
        for line in filter(commands.search, file.read_text().splitlines()):
            assert "--secrets unchanged" in line or "--snapshot" in line


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_step_has_a_secret_but_those_that_run_reconciler(file: Path) -> None:
    for job in read(file)["jobs"].values():
        assert "secrets." not in json.dumps({key: value for key, value in job.items() if key != "steps"})
        having = [step for step in job["steps"] if "secrets." in json.dumps(step)]
        assert all(re.search(r"^ *reconciler ", step.get("run", ""), re.MULTILINE) for step in having)
        assert bool(having) == ("secrets." in json.dumps(job))


def test_the_pipelines_have_no_default_package() -> None:
    (action,) = ACTIONS
    assert {name: entry["default"] for name, entry in read(action)["inputs"].items()} == {"package": "", "index": ""}
    assert read(GITLAB)["variables"] == {"RECONCILER_PACKAGE": ""}


def test_no_page_message_or_pipeline_installs_reconciler_from_an_index_by_name() -> None:
    found = [*(ROOT / "reconciler").rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    found += [file for file in GITOPS.rglob("*") if file.is_file()]
    by_name = re.compile(r"install '?reconciler(?! with)|reconciler *[~=<>]=")
    assert [file for file in found if by_name.search(file.read_text())] == []


def test_a_fork_is_planned_by_the_job_that_has_no_secret() -> None:
    jobs = read(GITOPS / "github/.github/workflows/plan.yml")["jobs"]
    head = "github.event.pull_request.head.repo.full_name"
    assert jobs["plan"]["if"] == (
        f"github.event_name == 'pull_request' && github.actor != 'dependabot[bot]' && {head} == github.repository"
    )
    assert jobs["fork"]["if"] == (
        f"github.event_name == 'pull_request' && (github.actor == 'dependabot[bot]' || {head} != github.repository)"
    )
    assert "secrets." not in json.dumps(jobs["fork"])


def test_a_wheel_contains_the_pipelines_that_init_writes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        for host in pipelines.HOSTS:
            for path in pipelines.read_pipelines(host):
                assert wheel.read(f"reconciler/pipelines/{host}/{path}") == (GITOPS / host / path).read_bytes()


# --- GitHub -----------------------------------------------------------------------------------------------------------


def plan_request(runner: Runner, forge: Forge) -> Change:
    """A request, after its plan job."""
    head = runner.environ["GITHUB_SHA"]
    good(runner.job("plan.yml", "plan"))
    forge.runs.append(Run(int(runner.environ["GITHUB_RUN_ID"]), head))
    return forge.open(head)


def test_github_a_pull_request_is_planned_and_commented_and_applied_once_after_its_merge(
    clone: Clone, forge: Forge, sandbox: Sandbox
) -> None:
    change = plan_request(runner := clone("github"), forge)
    assert "2 to create" in forge.bodies[0]
    assert forge.bodies[0] in (runner.clone / "summary").read_text()
    assert set(runner.findings) == {"reconciler-production"}
    assert sandbox.calls() == []
    merged = on_push(clone("github"), change.head)
    merge_as(change, merged.environ["GITHUB_SHA"])
    merged.context["secrets.RECONCILER_API_KEY"] = KEY
    good(merged.job("apply.yml", "apply-production"))
    assert sandbox.calls() == ["POST /ip_policies", "POST /ip_policy_rules"]
    assert (
        forge.artifacts / merged.environ["GITHUB_RUN_ID"] / "events-production" / "events-production.ndjson"
    ).exists()
    sandbox.forget_log()
    good(merged.job("apply.yml", "apply-production"))
    assert sandbox.calls() == []


@pytest.mark.parametrize(
    ("package", "index"), [("", ""), ("reconciler", ""), ("reconciler~=0.1", "https://index.example.com/simple")]
)
def test_github_no_package_is_installed_by_default_or_without_an_index(
    clone: Clone, forge: Forge, package: str, index: str
) -> None:
    runner = clone("github", "")
    inputs = {"package": package, "index": index}
    action = read(runner.clone / ".github/actions/reconciler/action.yml")
    install = [step for step in action["runs"]["steps"] if "run" in step]
    ran = runner.steps(install, {}, inputs)
    if index:
        assert (ran.code, runner.installed_packages) == (0, [package])
        assert f"PIP_INDEX_URL={index}\n" in runner.shown_to_pip
    else:
        assert (ran.code, runner.installed_packages) == (1, [])
        assert ran.out.startswith("::error::.github/actions/reconciler/action.yml does not say what to install: ")
        assert ran.out.count("\n") == 1


def test_github_the_configured_package_is_installed_without_access_to_keys(clone: Clone, forge: Forge) -> None:
    runner = clone("github")
    plan_request(runner, forge)
    runner.context["secrets.RECONCILER_API_KEY"] = KEY
    on_push(runner, runner.environ["GITHUB_SHA"]).job("apply.yml", "apply-production")
    runner.job("drift.yml", "drift")
    runner.job("snapshot.yml", "snapshot")
    assert runner.installed_packages == [f"reconciler[postgres] @ {PACKAGE}"] * 4
    assert unseen(runner) == []


def unseen(runner: Runner) -> list[str]:
    """The secrets in the environment of pip."""
    return [secret for secret in (KEY, PLAN_KEY, TOKEN) if f"={secret}\n" in runner.shown_to_pip]


def test_github_a_push_without_a_reviewed_plan_is_not_applied(clone: Clone, forge: Forge, sandbox: Sandbox) -> None:
    before = clone("github").environ["GITHUB_SHA"]
    runner = on_push(clone("github"), before)
    runner.context["secrets.RECONCILER_API_KEY"] = KEY
    pushed = runner.job("apply.yml", "apply-production")
    assert pushed.code == 3
    assert "was pushed to main, not merged, so that no plan of it was reviewed" in pushed.err
    merge_as(forge.open("f" * 40), runner.environ["GITHUB_SHA"])
    unplanned = runner.job("apply.yml", "apply-production")
    assert unplanned.code == 3
    assert "#12: its pipeline kept no plan" in unplanned.err
    assert sandbox.calls() == []


def test_github_a_fork_is_planned_from_the_last_snapshot(clone: Clone, forge: Forge, sandbox: Sandbox) -> None:
    trusted = clone("github")
    good(trusted.job("snapshot.yml", "snapshot"))
    forge.runs.append(Run(int(trusted.environ["GITHUB_RUN_ID"]), "main", "snapshot"))
    sandbox.forget_log()
    stranger = clone("github")
    stranger.context = {"github.token": TOKEN}
    good(stranger.job("plan.yml", "fork"))
    summary = (stranger.clone / "summary").read_text()
    assert "2 to create" in summary
    assert "planned from a snapshot" in summary
    assert sandbox.log() == []


def test_github_a_snapshot_that_a_fork_uploads_is_not_used(clone: Clone, forge: Forge) -> None:
    """A fork with a branch named main can run its own version of the workflow, which GitHub lists with the others."""
    trusted = clone("github")
    good(trusted.job("snapshot.yml", "snapshot"))
    forge.runs.append(Run(int(trusted.environ["GITHUB_RUN_ID"]), "main", "snapshot", event="schedule"))
    forge.runs.append(Run(1000, "main", "snapshot", event="pull_request"))
    forged = forge.artifacts / "1000" / "snapshot" / "snapshot-production.json"
    forged.parent.mkdir(parents=True)
    forged.write_text("{}")
    stranger = clone("github")
    stranger.context = {"github.token": TOKEN}
    good(stranger.job("plan.yml", "fork"))
    assert "2 to create" in (stranger.clone / "summary").read_text()


def test_github_the_nightly_run_fails_on_drift_and_lists_it(clone: Clone, forge: Forge) -> None:
    runner = clone("github")
    found = runner.job("drift.yml", "drift")
    assert found.code == 2
    assert "IPPolicy/office" in (runner.clone / "summary").read_text()


def test_github_the_first_push_succeeds_without_secrets(clone: Clone, forge: Forge, sandbox: Sandbox) -> None:
    runner = clone("github", "")
    runner.context = {"github.token": TOKEN}
    action = runner.clone / ".github/actions/reconciler/action.yml"
    action.write_text(action.read_text().replace('default: ""', f'default: "{PACKAGE}"', 1))
    good(runner.job("plan.yml", "fork"))
    on_push(runner, "0" * 40)
    for workflow, job in (("apply.yml", "apply-production"), ("snapshot.yml", "snapshot")):
        good(runner.job(workflow, job))
    assert sandbox.log() == []


# --- GitLab -----------------------------------------------------------------------------------------------------------


def test_gitlab_a_merge_request_is_planned_and_commented_and_applied_after_its_merge(
    clone: Clone, forge: Forge, sandbox: Sandbox
) -> None:
    runner = clone("gitlab")
    head, run = runner.environ["CI_COMMIT_SHA"], runner.environ["GITHUB_RUN_ID"]
    good(gitlab(runner, "plan", RECONCILER_READ_KEY=KEY))
    assert "2 to create" in forge.bodies[0]
    assert json.loads((runner.clone / ".reconciler/codequality-production.json").read_text())
    assert sandbox.calls() == []
    kept = forge.artifacts / run / "plan"
    kept.mkdir(parents=True)
    (kept / "plan-production.json").write_text((runner.clone / ".reconciler/plan-production.json").read_text())
    merged = on_push(clone("gitlab"), head)
    refused = gitlab(merged, "apply-production", RECONCILER_API_KEY=KEY)
    assert refused.code == 3
    assert "was pushed to main, not merged" in refused.err
    merge_as(forge.open(head), merged.environ["CI_COMMIT_SHA"])
    forge.runs.append(Run(int(run), head))
    good(gitlab(merged, "apply-production", RECONCILER_API_KEY=KEY))
    assert sandbox.calls() == ["POST /ip_policies", "POST /ip_policy_rules"]


def test_gitlab_the_configured_package_is_installed_without_access_to_keys(clone: Clone, forge: Forge) -> None:
    runner = clone("gitlab")
    secrets = {"RECONCILER_READ_KEY": KEY, "RECONCILER_API_KEY": KEY, "AGENT_TOKEN": KEY, "RECONCILER_STORE": ""}
    for job in ("plan", "apply-production", "drift"):
        gitlab(runner, job, **secrets)
    assert runner.installed_packages == [f"reconciler[postgres] @ {PACKAGE}"] * 3
    assert unseen(runner) == []


@pytest.mark.parametrize("more", [{}, {"RECONCILER_PACKAGE": "reconciler"}], ids=["nothing", "a name"])
def test_gitlab_no_package_is_installed_by_default_or_without_an_index(
    clone: Clone, forge: Forge, more: dict[str, str]
) -> None:
    runner = clone("gitlab", "")
    ran = gitlab(runner, "plan", RECONCILER_READ_KEY=KEY, **more)
    assert (ran.code, runner.installed_packages) == (1, [])
    assert ran.err.startswith("RECONCILER_PACKAGE does not say what to install: ")
    assert ran.err.count("\n") == 1


def test_gitlab_a_name_is_installed_from_the_index_that_a_variable_names(clone: Clone, forge: Forge) -> None:
    runner = clone("gitlab", "")
    index = "https://index.example.com/simple"
    variables = {"RECONCILER_PACKAGE": "reconciler~=0.1", "PIP_INDEX_URL": index}
    good(gitlab(runner, "plan", RECONCILER_READ_KEY=KEY, **variables))
    assert runner.installed_packages == ["reconciler~=0.1"]
    assert f"PIP_INDEX_URL={index}\n" in runner.shown_to_pip


def test_gitlab_the_scheduled_run_fails_on_drift(clone: Clone) -> None:
    runner = clone("gitlab")
    assert gitlab(runner, "drift", RECONCILER_READ_KEY=KEY).code == 2
    assert "IPPolicy/office" in (runner.clone / ".reconciler/drift-production.html").read_text()


@pytest.mark.parametrize(
    "file", ["github/.github/workflows/drift.yml", "gitlab/.gitlab-ci.yml", "cron/drift.sh", "kubernetes/cronjob.yaml"]
)
def test_every_nightly_job_judges_health(file: str) -> None:
    checks = re.findall(r"reconciler drift .*", (GITOPS / file).read_text(encoding="utf-8"))
    assert len(checks) == 1
    assert " --health " in checks[0]


# --- cron, systemd, Kubernetes ----------------------------------------------------------------------------------------


def test_the_cron_script_clones_once_and_prints_only_drift(clone: Clone, tmp_path: Path, sandbox: Sandbox) -> None:
    runner = clone("none")
    runner.environ |= {
        "RECONCILER_API_KEY": KEY,
        "REPOSITORY": str(tmp_path / "origin"),
        "CLONE": str(tmp_path / "kept"),
    }
    script = [str(GITOPS / "cron/drift.sh")]
    drifted = runner.script(script, {})
    assert drifted.code == 2
    assert "IPPolicy/office" in drifted.out
    good(runner.script(["reconciler apply --auto-approve --project ."], {}))
    well = runner.script(script, {})
    assert (well.code, well.out) == (0, "")


def test_the_units_and_the_crontab_run_the_script_at_the_same_hour() -> None:
    service = (GITOPS / "cron/reconciler-drift.service").read_text()
    timer = (GITOPS / "cron/reconciler-drift.timer").read_text()
    table = (GITOPS / "cron/reconciler.crontab").read_text()
    (started,) = re.findall(r"^ExecStart=(.*)$", service, re.MULTILINE)
    assert started.endswith("/drift.sh")
    assert re.search(rf"^23 3 \* \* \* reconciler .*{started}$", table, re.MULTILINE)
    assert "OnCalendar=*-*-* 03:23:00\n" in timer


def test_the_containers_of_the_cron_job_clone_and_check_drift(clone: Clone, tmp_path: Path, sandbox: Sandbox) -> None:
    runner = clone("none")
    documents = list(yaml.safe_load_all((GITOPS / "kubernetes/cronjob.yaml").read_text()))
    pod: Any = documents[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    project = tmp_path / "project"
    project.mkdir()
    values = {
        "REPOSITORY": str(tmp_path / "origin"),
        "BRANCH": "main",
        "RECONCILER_API_KEY": KEY,
        "RECONCILER_STORE": "",
    }
    codes = []
    for container in (*pod["initContainers"], *pod["containers"]):
        environ = {variable["name"]: values[variable["name"]] for variable in container["env"]}
        assert container["command"] == ["sh", "-ec"]
        ran = runner.script([arg.replace("/project", str(project)) for arg in container["args"]], environ)
        codes.append(ran.code)
    assert codes == [0, 2]
