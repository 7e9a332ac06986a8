"""The pipelines of a project with two environments, from a request that needs an approval to nightly drift checks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import Forge, Run
from tests.examples.repository import Clone, gitlab, good, merge_as, on_push
from tests.examples.workflows import Ran, Runner
from tests.harness.git import GIT
from tests.harness.platform import KEY, Sandbox

pytestmark = pytest.mark.usefixtures("over_socket")

ENVIRONMENTS = ("staging", "production")
RESTRICTED = "  ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}\n"
EDGE = f"""\
kind: ReservedDomain
name: shop
spec:
  domain: "${{{{ var.host }}}}"
  certificate_management_policy: {{authority: letsencrypt, private_key_type: ecdsa}}
---
kind: HTTPSEdge
name: shop
spec:
  hostports: ["${{{{ var.host }}}}:443"]
---
kind: HTTPResponseBackend
name: shop
spec:
  body: hello
---
kind: HTTPSEdgeRoute
name: admin
spec:
  edge_id: {{ref: HTTPSEdge/shop}}
  match_type: path_prefix
  match: /admin
  backend:
    backend_id: {{ref: HTTPResponseBackend/shop}}
{RESTRICTED}"""


class Pipelines:
    """One code host that runs the pipelines of the project in `origin`."""

    def __init__(self, host: str, clone: Clone, forge: Forge, origin: Path) -> None:
        self.host, self.clone, self.forge, self.origin = host, clone, forge, origin

    def git(self, *words: str) -> str:
        done = subprocess.run([*GIT, "-C", str(self.origin), *words], capture_output=True, check=True, text=True)
        return done.stdout.strip()

    def review(self, branch: str) -> Ran:
        """The plan job of a request for the branch, which contains all changes in `origin` that are not committed."""
        if self.host == "github":
            runner = self.clone("github", branch=branch, onto="main")
            ran = runner.job("plan.yml", "plan")
            assert set(runner.findings) == {f"reconciler-{name}" for name in ENVIRONMENTS}
            assert set(self.forge.bodies[0].splitlines()) >= set((runner.clone / "summary").read_text().splitlines())
        else:
            runner = self.clone("gitlab", branch=branch)
            ran = gitlab(runner, "plan", RECONCILER_READ_KEY=KEY)
            folder = self.forge.artifacts / runner.environ["GITHUB_RUN_ID"] / "plan"
            folder.mkdir(parents=True)
            for file in runner.clone.glob(".reconciler/plan-*.json"):
                (folder / file.name).write_bytes(file.read_bytes())
        page = (runner.clone / ".reconciler/plan.html").read_text()
        assert re.findall("<td><b>(.*?)</b></td>", page) == [*ENVIRONMENTS]
        result = "failure" if ran.code else "success"
        self.forge.runs.append(Run(int(runner.environ["GITHUB_RUN_ID"]), self.git("rev-parse", branch), result=result))
        return ran

    def merge(self, branch: str) -> Iterator[Ran]:
        """The apply jobs, one after the other."""
        self.git("checkout", "--quiet", "main")
        before = self.git("rev-parse", "main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", branch)
        self.forge.requests.clear()  # one request at a time, each with the same number
        merge_as(self.forge.open(self.git("rev-parse", branch)), self.git("rev-parse", "main"))
        for name in ENVIRONMENTS:
            runner = on_push(self.fresh(), before)
            if self.host == "github":
                runner.context["secrets.RECONCILER_API_KEY"] = KEY
                yield runner.job("apply.yml", f"apply-{name}")
            else:
                yield gitlab(runner, f"apply-{name}", RECONCILER_API_KEY=KEY)

    def night(self) -> Ran:
        runner, hook = self.fresh(), f"{self.forge.url}/hook"
        self.forge.instead["POST /hook"] = (200, {}, {})
        if self.host == "github":
            runner.context["secrets.RECONCILER_NOTIFY"] = hook
            ran = runner.job("drift.yml", "drift")
        else:
            ran = gitlab(runner, "drift", RECONCILER_READ_KEY=KEY, RECONCILER_NOTIFY=hook)
        assert {file.name for file in runner.clone.glob(".reconciler/report-*")} == {
            f"report-{name}.html" for name in ENVIRONMENTS
        }
        return ran

    def fresh(self) -> Runner:
        """A machine with the main branch."""
        return self.clone(self.host, branch="main", commit=False)


@pytest.mark.parametrize("host", ["github", pytest.param("gitlab", marks=pytest.mark.full)])
def test_from_a_pull_request_that_needs_an_approval_to_drift_that_is_repaired(
    host: str,
    clone: Clone,
    forge: Forge,
    sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    clone(host, environments=ENVIRONMENTS)
    origin = tmp_path / "origin"
    pipelines = Pipelines(host, clone, forge, origin)

    settings = origin / "reconciler.yaml"
    required = "[widens_access, locks_out, irreversible, runs_command]"  # by `init`
    assert f"\n  require_approval: {required}\n" in settings.read_text()
    settings.write_text(settings.read_text() + "variables: {host: {type: string}}\n")
    for name in ENVIRONMENTS:
        file = origin / f"environments/{name}.yaml"
        file.write_text(f"{file.read_text()}variables: {{host: {name}.example.com}}\n")
    edge = origin / "manifests/edge.yaml"
    edge.write_text(EDGE)
    assert main(["fmt", "--project", str(origin)]) == 0
    good(pipelines.review("declare"))
    (body,) = forge.bodies
    assert re.findall("^[|] `([^`]*)` [|] ✅ ready to apply [|] 4 to create [|]", body, re.MULTILINE) == [*ENVIRONMENTS]
    assert body.count("<code>HTTPSEdgeRoute/admin</code> create · ") == 1
    assert sandbox.calls() == []
    for number, ran in enumerate(pipelines.merge("declare"), 1):
        good(ran)
        assert len(sandbox.get("/edges/https")["https_edges"]) == number

    edge.write_text(edge.read_text().replace(RESTRICTED, ""))
    assert RESTRICTED not in edge.read_text()
    sandbox.forget_log()
    refused = pipelines.review("open")
    assert refused.code == 4, refused.out + refused.err
    opened = ", ".join(f"`https://{name}.example.com/admin…` (`{name}`)" for name in ENVIRONMENTS)
    assert forge.bodies[0].count(f"- ⚠️ **lets in requests that were refused**: {opened}\n") == 1
    assert "--allow" not in forge.bodies[0] + refused.out + refused.err
    entries = [line for line in refused.err.splitlines() if re.match(r"  - |    \S", line)]
    (origin / "approvals.yaml").write_text("\n".join(["approvals:", *entries, ""]))
    good(pipelines.review("open"))
    assert len(forge.comments) == 1
    assert sandbox.calls() == []
    for ran in pipelines.merge("open"):
        good(ran)
    removed = [call for call in sandbox.calls() if call.endswith("/ip_restriction")]
    assert [call.partition(" ")[0] for call in removed] == ["DELETE", "DELETE"]

    good(pipelines.night())
    assert (forge.issues, ("POST", "/hook") in forge.asked) == ([], False)
    production = next(
        edge for edge in sandbox.get("/edges/https")["https_edges"] if "production" in edge["hostports"][0]
    )
    route = f"/edges/https/{production['id']}/routes"
    planted = sandbox.post(route, {"match_type": "path_prefix", "match": "/planted"})
    for _ in range(2):
        assert pipelines.night().code == 2
    assert forge.asked.count(("POST", "/hook")) == 1  # a change, not each night
    (issue,) = forge.issues
    assert (issue["title"], issue["state"]) == ("Drift in prod-production", "open")
    assert "/planted" in issue["body"]
    sandbox.delete(f"{route}/{planted['id']}")
    good(pipelines.night())
    assert [issue["state"] for issue in forge.issues] == ["closed"]
    assert TOKEN not in str(forge.issues)


def test_each_environment_has_its_own_key_and_a_failed_one_does_not_stop_the_others(clone: Clone, forge: Forge) -> None:
    runner = clone("github", environments=ENVIRONMENTS)
    runner.context["secrets.RECONCILER_READ_KEY_STAGING"] = "canary" + "OfAnotherAccount"
    assert runner.job("plan.yml", "plan").code == 6
    (body,) = forge.bodies
    assert "## Plan for 1 of 2 environments\n" in body
    assert "| `production` | no changes by this branch |" in body
    assert "| `staging` | ❔ **not planned**; see the log | unknown |" in body
    assert set(runner.findings) == {"reconciler-production"}


def test_a_fork_is_planned_in_each_environment_without_a_key(clone: Clone, forge: Forge, sandbox: Sandbox) -> None:
    trusted = clone("github", environments=ENVIRONMENTS)
    good(trusted.job("snapshot.yml", "snapshot"))
    forge.runs.append(Run(int(trusted.environ["GITHUB_RUN_ID"]), "main", "snapshot"))
    sandbox.forget_log()
    stranger = clone("github", branch="theirs", onto="main")
    stranger.context = {"github.token": TOKEN}
    good(stranger.job("plan.yml", "fork"))
    summary = (stranger.clone / "summary").read_text()
    assert all(f"| `{name}` | no changes by this branch |" in summary for name in ENVIRONMENTS)
    assert summary.count("pending: 2 to create |") == 2
    assert sandbox.log() == []


def test_a_fork_is_planned_in_the_other_environments_if_one_fails(clone: Clone, forge: Forge) -> None:
    trusted = clone("github", environments=ENVIRONMENTS)
    trusted.context["secrets.RECONCILER_READ_KEY_STAGING"] = "canary" + "OfAnotherAccount"
    assert trusted.job("snapshot.yml", "snapshot").code == 6
    run = int(trusted.environ["GITHUB_RUN_ID"])
    forge.runs.append(Run(run, "main", "snapshot", result="failure"))
    kept = forge.artifacts / str(run) / "snapshot"
    assert [file.name for file in kept.iterdir()] == ["snapshot-production.json"]
    stranger = clone("github", branch="theirs", onto="main")
    stranger.context = {"github.token": TOKEN}
    ran = stranger.job("plan.yml", "fork")
    assert ran.code == 1
    assert "snapshot-staging.json" in ran.err
    summary = (stranger.clone / "summary").read_text()
    assert "| `production` | no changes by this branch |" in summary
    assert "| `staging` | ❔ **not planned**; see the log | unknown |" in summary


def test_a_fork_with_an_unformatted_manifest_fails_but_is_planned(clone: Clone, forge: Forge, tmp_path: Path) -> None:
    trusted = clone("github", environments=ENVIRONMENTS)
    good(trusted.job("snapshot.yml", "snapshot"))
    forge.runs.append(Run(int(trusted.environ["GITHUB_RUN_ID"]), "main", "snapshot"))
    (tmp_path / "origin/manifests/topic.yaml").write_text("name:    topic\nkind: IPPolicy\nspec: {}\n")
    stranger = clone("github", branch="theirs", onto="main")
    stranger.context = {"github.token": TOKEN}
    assert stranger.job("plan.yml", "fork").code == 1
    assert (stranger.clone / "summary").read_text().count("| ✅ ready to apply | 1 to create |") == 2


def test_a_gitlab_branch_behind_its_target_is_planned_as_merged(clone: Clone, forge: Forge, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    clone("gitlab", environments=ENVIRONMENTS)
    added = "kind: IPPolicy\nname: {name}\nspec: {{description: Added}}\n"
    (origin / "manifests/topic.yaml").write_text(added.format(name="topic"))
    clone("gitlab", branch="topic")
    assert main(["fmt", "--project", str(origin)]) == 0
    clone("gitlab", branch="topic")
    clone("gitlab", branch="main", commit=False)
    (origin / "manifests/newer.yaml").write_text(added.format(name="newer"))
    assert main(["fmt", "--project", str(origin)]) == 0
    clone("gitlab", branch="main")
    runner = clone("gitlab", branch="topic", commit=False)
    good(gitlab(runner, "plan", RECONCILER_READ_KEY=KEY))
    (body,) = forge.bodies
    assert body.count("ready to apply |") == 2
    assert "behind" not in body
