"""`apply --reviewed` applies of a merge what the plan of the merged request contains, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.plan import Call
from reconciler.operations.opening import plan_key
from reconciler.operations.runtime import Runtime
from reconciler.rendering.wire import plan_json
from tests.cli.code_hosts import TOKEN
from tests.examples.forge import Change, Forge, Run
from tests.examples.merges import NOBODY, PLAN_KEY, Push, Repository, Saved
from tests.harness.platform import Reachable, Sandbox
from tests.harness.project import Project
from tests.harness.tiers import first_of_each, full, only_if


def policy(name: str, description: str = "") -> str:
    return f"kind: IPPolicy\nname: {name}\nspec: {{description: {description or name}}}\n"


def domain(name: str) -> str:
    return f"kind: ReservedDomain\nname: {name}\nspec: {{domain: {name}.example.com}}\n"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    forge = Forge(artifacts=tmp_path / "artifacts")
    with forge:
        yield forge


@pytest.fixture
def make(
    tmp_path: Path, forge: Forge, sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Repository]:
    return lambda host: Repository(host, tmp_path / "machines", forge, sandbox, capsys)


@pytest.fixture(params=["github", pytest.param("gitlab", marks=full)])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


on_each_host = pytest.mark.parametrize("host", ["github", "gitlab"])
"""For what the product asks the host: which request was merged, and which artifact is its plan. What it compares with a
plan that it got is the same code for both."""


@pytest.fixture
def repository(host: str, make: Callable[[str], Repository]) -> Repository:
    return make(host)


def open_reviewed(repository: Repository, branch: str = "topic", base: str = "main", **files: str | None) -> Change:
    """A request with these manifests, whose plan was reviewed."""
    repository.commit(branch, {f"manifests/{name}.yaml": text for name, text in files.items()}, base)
    request = repository.open(branch, base)
    result = repository.plan(request)
    assert result.code == 0, result
    return request


OpenFirst = Callable[[Repository], Change]


@pytest.fixture(scope="module")
def saved() -> dict[str, Saved]:
    return {}


@pytest.fixture
def open_first(saved: dict[str, Saved], tmp_path_factory: pytest.TempPathFactory) -> OpenFirst:
    """A function that opens the first request of a repository: it creates the policy `a`, and its plan was reviewed.

    The request is planned once for each host; a later repository is a copy of the first.
    """

    def open_first(repository: Repository) -> Change:
        if repository.host in saved:
            repository.load(saved[repository.host])
        else:
            open_reviewed(repository, a=policy("a"))
            saved[repository.host] = repository.save(tmp_path_factory.mktemp(repository.host))
        return repository.forge.requests[-1]

    return open_first


def list_policies(sandbox: Sandbox) -> list[str]:
    return sorted(found["description"] for found in sandbox.get("/ip_policies")["ip_policies"])


# --- every way to merge -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_github_the_reviewed_plan_is_applied_however_the_request_is_merged(
    make: Callable[[str], Repository], sandbox: Sandbox, how: str
) -> None:
    repository = make("github")
    repository.commit("topic", {"manifests/a.yaml": policy("a")})
    request = open_reviewed(repository, b=policy("b"))
    repository.commit("main", {"README.md": "meanwhile\n"})
    result = repository.apply(repository.merge(request, how=how))
    assert (result.code, result.out) == (0, "Applied: 2 created.\n"), result
    assert list_policies(sandbox) == ["a", "b"]


@pytest.mark.parametrize("how", ["merge", "squash", "forward"])
def test_gitlab_the_reviewed_plan_is_applied_however_the_request_is_merged(
    make: Callable[[str], Repository], sandbox: Sandbox, how: str
) -> None:
    repository = make("gitlab")
    repository.commit("topic", {"manifests/a.yaml": policy("a")})
    request = open_reviewed(repository, b=policy("b"))
    result = repository.apply(repository.merge(request, how=how))
    assert (result.code, result.out) == (0, "Applied: 2 created.\n"), result
    assert list_policies(sandbox) == ["a", "b"]


@on_each_host
def test_a_merge_queue_pushes_several_requests_at_once_and_each_was_reviewed(
    repository: Repository, sandbox: Sandbox
) -> None:
    first = open_reviewed(repository, "first", a=policy("a"))
    second = open_reviewed(repository, "second", b=policy("b"))
    result = repository.apply(repository.merge(first, second))
    assert (result.code, result.out) == (0, "Applied: 2 created.\n"), result
    assert list_policies(sandbox) == ["a", "b"]


def test_a_merge_queue_with_a_request_without_a_plan_is_not_applied(repository: Repository) -> None:
    first = open_reviewed(repository, "first", a=policy("a"))
    repository.commit("second", {"manifests/b.yaml": policy("b")})
    second = repository.open("second")
    result = repository.apply(repository.merge(first, second))
    assert result.code == 3
    assert "IPPolicy/b: not reviewed: create\n" in result.err
    assert "IPPolicy/a" not in result.err
    assert f"{second.number}: its pipeline kept no plan" in result.err


def test_the_token_is_not_sent_to_where_the_host_stores_artifacts(
    make: Callable[[str], Repository], forge: Forge, open_first: OpenFirst
) -> None:
    repository = make("github")
    assert repository.apply(repository.merge(open_first(repository))).code == 0
    assert forge.stored
    assert TOKEN not in str(forge.stored)


# --- what was not reviewed --------------------------------------------------------------------------------------------


@on_each_host
def test_a_push_without_a_request_is_not_applied(repository: Repository) -> None:
    before = repository.git("rev-parse", "main")
    after = repository.commit("main", {"manifests/a.yaml": policy("a")})
    result = repository.apply(Push(before, after))
    assert result.code == 3
    assert result.err.startswith(f"error: {after} was pushed to main, not merged, so that no plan of it was reviewed; ")


def test_the_push_that_adds_the_pipeline_applies_nothing_and_succeeds(repository: Repository, sandbox: Sandbox) -> None:
    note = f" adds {repository.pipeline}; requests will be applied from now on\n"
    assert repository.apply(Push(NOBODY, repository.first)).err == f"note: {repository.first}{note}"
    repository.commit("main", {repository.pipeline: None})
    before = repository.git("rev-parse", "main")
    after = repository.commit("main", {repository.pipeline: "y\n", "manifests/a.yaml": policy("a")})
    result = repository.apply(Push(before, after))
    assert (result.code, result.err) == (0, f"note: {after}{note}")
    assert sandbox.calls() == []


def attack(repository: Repository) -> tuple[Change, Change]:
    """Two requests with one head, which deletes a domain: only the base of the other approves the deletion."""
    repository.apply(repository.merge(open_reviewed(repository, "add", shop=domain("shop"))))
    repository.commit("evil", {"README.md": "mine\n"})
    head = repository.commit("topic", {"manifests/shop.yaml": None, "manifests/b.yaml": policy("b")}, "evil")
    good, evil = repository.forge.open(head), repository.forge.open(head, "evil")
    refused = repository.plan(good)
    assert refused.code == 4
    entries = [line for line in refused.err.splitlines() if line.startswith(("  - ", "    "))]
    repository.commit("evil", {"approvals.yaml": "\n".join(["approvals:", *entries, ""])})
    assert repository.plan(evil).code == 0
    return good, evil


@on_each_host
def test_two_requests_with_one_head_only_the_plan_of_the_merged_one_counts(
    repository: Repository, sandbox: Sandbox
) -> None:
    good, evil = attack(repository)
    result = repository.apply(repository.merge(good))
    assert result.code == 3
    assert "ReservedDomain/shop: not reviewed: delete\n" in result.err
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1
    assert evil.state == "open"


@on_each_host
def test_a_request_that_was_merged_elsewhere_with_the_same_head_does_not_count(
    repository: Repository, sandbox: Sandbox
) -> None:
    good, evil = attack(repository)
    repository.merge(evil)
    assert repository.apply(repository.merge(good)).code == 3
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1


@on_each_host
def test_a_request_that_moves_another_branch_to_the_same_commit_does_not_count(
    repository: Repository, sandbox: Sandbox
) -> None:
    repository.git("branch", "release", "main")
    repository.commit("topic", {"manifests/a.yaml": policy("a")})
    request, other = repository.open("topic"), repository.open("topic", "release")
    assert repository.plan(other).code == 0
    repository.merge(other, how="forward")
    result = repository.apply(repository.merge(request, how="forward"))
    assert result.code == 3
    assert "IPPolicy/a: not reviewed: create\n" in result.err
    assert list_policies(sandbox) == []


@on_each_host
def test_a_push_of_the_commits_of_an_earlier_request_is_no_merge_of_it(
    repository: Repository, sandbox: Sandbox, open_first: OpenFirst
) -> None:
    request = open_first(repository)
    repository.merge(request, how="squash")
    before = repository.commit("main", {"manifests/a.yaml": None})
    repository.git("checkout", "--quiet", "topic")
    repository.git("merge", "--quiet", "--no-edit", "main")
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--ff-only", "topic")
    result = repository.apply(Push(before, repository.git("rev-parse", "main")))
    assert result.code == 3
    assert "was pushed to main, not merged" in result.err
    assert list_policies(sandbox) == []


def test_the_plan_of_a_retargeted_request_does_not_count_for_its_new_base(
    repository: Repository, sandbox: Sandbox
) -> None:
    repository.commit("other", {"README.md": "other\n"})
    request = open_reviewed(repository, "topic", "other", a=policy("a"))
    request.base = "main"
    result = repository.apply(repository.merge(request))
    assert result.code == 3
    assert f"its plan is for request {request.number} of " in result.err
    assert " into other at " in result.err
    assert repository.plan(request).code == 0


def test_approvals_are_those_of_the_merged_checkout(repository: Repository, sandbox: Sandbox) -> None:
    """A plan file with a granted approval: the plan key is readable for those who can push."""
    repository.apply(repository.merge(open_reviewed(repository, "add", shop=domain("shop"), kept=policy("kept"))))
    repository.commit("topic", {"manifests/shop.yaml": None})
    request = repository.open("topic")
    assert repository.plan(request, "--allow", "delete:ReservedDomain=1").code == 0
    result = repository.apply(repository.merge(request))
    assert result.code == 4
    assert "error: approval required: add to approvals.yaml, in a reviewed commit:\n" in result.err
    assert "  - delete: ReservedDomain/shop\n" in result.err
    assert "--allow" not in result.err
    assert len(sandbox.get("/reserved_domains")["reserved_domains"]) == 1


@on_each_host
def test_a_newer_plan_of_the_same_request_counts_and_an_older_one_where_it_does_not_fit(
    repository: Repository, forge: Forge, open_first: OpenFirst
) -> None:
    request = open_first(repository)
    assert repository.plan(request).code == 0
    newest = forge.artifacts / str(forge.runs[-1].id) / "plan" / "plan.json"
    newest.write_text("{}")
    assert repository.apply(repository.merge(request)).code == 0


def test_a_change_of_another_merge_that_was_never_applied_is_named(repository: Repository, sandbox: Sandbox) -> None:
    first, second = (open_reviewed(repository, name, **{name: policy(name)}) for name in ("one", "two"))
    repository.merge(first)  # its apply never ran
    push = repository.merge(second)
    result = repository.apply(push)
    assert result.code == 3
    assert result.err.startswith(
        "IPPolicy/one: not reviewed: create\nerror: these changes are not in the reviewed plan"
    )
    part = repository.apply(push, "--partial")
    assert (part.code, part.out) == (5, "Applied: 1 created.\n"), part
    assert "IPPolicy/one: not reviewed: create\n" in part.err
    assert list_policies(sandbox) == ["two"]


def test_with_partial_a_change_waits_for_one_that_was_not_reviewed(repository: Repository, sandbox: Sandbox) -> None:
    rule = "kind: IPPolicyRule\nname: r\nspec: {ip_policy_id: {ref: IPPolicy/a}, cidr: 192.0.2.0/24, action: allow}\n"
    request = open_reviewed(repository, a=policy("a"), b=policy("b"), r=rule)
    push = repository.merge(request)
    forge, run = repository.forge, repository.forge.runs[-1].id
    file = forge.artifacts / str(run) / "plan" / "plan.json"
    plan = plan_json.read_plan(file.read_text(), lambda *_: pytest.fail("there is no secret"))
    without = tuple(change for change in plan.changes if str(change.address) != "IPPolicy/a")
    calls = tuple(call for call in plan.calls if str(call.address) != "IPPolicy/a")
    calls = tuple(replace(call, needs=()) for call in calls)
    file.write_text(plan_json.write_plan(replace(plan, changes=without, calls=calls), PLAN_KEY.encode()))
    result = repository.apply(push, "--partial")
    assert result.code == 5
    assert "skipped: create IPPolicyRule/r: it needs a change that was not reviewed\n" in result.err
    assert list_policies(sandbox) == ["b"]


def test_changes_on_the_platform_after_the_review_are_not_overwritten(repository: Repository, sandbox: Sandbox) -> None:
    repository.apply(repository.merge(open_reviewed(repository, "add", a=policy("a"))))
    request = open_reviewed(repository, "change", a=policy("a", "changed"))
    (live,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{live['id']}", {"description": "repaired in an outage"})
    assert repository.apply(repository.merge(request)).code == 3
    assert list_policies(sandbox) == ["repaired in an outage"]


def test_another_value_of_a_secret_is_another_change(repository: Repository) -> None:
    secret = (
        "kind: Vault\nname: v\nspec: {name: v}\n---\n"
        "kind: Secret\nname: s\nspec: {name: s, vault_id: {ref: Vault/v}, value: {from_env: DATADOG}}\n"
    )
    repository.environ["DATADOG"] = "first"
    request = open_reviewed(repository, s=secret)
    push = repository.merge(request)
    repository.environ["DATADOG"] = "second"
    result = repository.apply(push)
    assert (result.code, "Secret/s: not reviewed: create" in result.err) == (3, True), result
    repository.environ["DATADOG"] = "first"
    assert repository.apply(push).code == 0


def test_a_declaration_that_is_invalid_after_the_merge_does_not_hold_the_rest(
    repository: Repository, sandbox: Sandbox
) -> None:
    """A variable that only the pipeline of the request had."""
    unset = "kind: IPPolicy\nname: wrong\nspec: {description: {from_env: REGION}}\n"
    repository.environ["REGION"] = "eu"
    push = repository.merge(open_reviewed(repository, a=policy("a"), wrong=unset))
    del repository.environ["REGION"]
    result = repository.apply(push)
    assert (result.code, result.out) == (1, "Applied: 1 created.\n"), result
    assert "the environment variable REGION is not set" in result.err
    assert list_policies(sandbox) == ["a"]
    repository.environ["REGION"] = "eu"
    assert repository.apply(push).code == 0
    assert list_policies(sandbox) == ["a", "eu"]


# --- the tip of the branch before the push ----------------------------------------------------------------------------


POLICY = """\
policy: restricted
scope: {kinds: [TLSEdge]}
check: resource.spec.ip_restriction != null
message: ${resource.address} is open to everyone
"""
OPEN = "kind: TLSEdge\nname: pay\nspec: {description: pay}\n"
EDGE = OPEN.replace("}", ", ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}}")


@pytest.mark.parametrize(
    ("host", "how"),
    first_of_each(
        [("github", "rebase"), ("github", "squash"), ("gitlab", "merge"), ("gitlab", "forward")], lambda case: case[0]
    ),
)
def test_rules_are_those_of_the_branch_before_the_push(
    make: Callable[[str], Repository], sandbox: Sandbox, how: str, host: str
) -> None:
    """After a fast-forward or a rebase the first parent of the pushed commit is the author's, with the rule removed."""
    repository = make(host)
    repository.commit("main", {"policies/restricted.yaml": POLICY})
    assert (
        repository.apply(repository.merge(open_reviewed(repository, "edge", edge=EDGE, office=policy("office")))).code
        == 0
    )
    repository.commit("open", {"policies/restricted.yaml": None})
    repository.commit("open", {"manifests/edge.yaml": OPEN})
    request = repository.open("open")
    refused = repository.plan(request)
    assert refused.code == 4
    repository.forge.runs[-1].result = "success"  # by a changed workflow
    start = repository.git("rev-parse", "main")
    push = repository.merge(request, how=how)
    if how in ("rebase", "forward"):
        assert repository.git("rev-parse", f"{push.after}^1") != push.before
    result = repository.apply(push)
    assert result.code == 4, result
    assert sandbox.calls() == []
    repository.git("reset", "--quiet", "--hard", start)
    entries = [line for line in refused.err.splitlines() if line.startswith(("  - ", "    "))]
    repository.commit("open", {"approvals.yaml": "\n".join(["approvals:", *entries, ""])})
    approved = repository.open("open")
    assert repository.plan(approved).code == 0
    assert repository.apply(repository.merge(approved, how=how)).code == 0


@pytest.mark.parametrize("before", ["", "1" * 40])
def test_without_the_tip_before_the_push_nothing_is_sent(
    repository: Repository, before: str, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    result = repository.apply(Push(before, push.after))
    assert result.code == 3
    if before:
        assert result.err == (
            f"error: {before}, the tip of main before this push, is not in the checkout\n"
            "check out the whole history: `fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` in GitLab\n"
        )
    else:
        assert "the commit at the tip of main before this push is unknown" in result.err


def test_a_shallow_checkout_is_an_error_with_the_required_fetch_depth(
    repository: Repository, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    project = repository.clone("main")
    shallow = project.root.with_name("shallow")
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.origin}", str(shallow))
    project.root = shallow
    result = repository.apply_in(project, push)
    assert result.code == 3
    assert "is not in the checkout\ncheck out the whole history: `fetch-depth: 0`" in result.err


def test_a_push_that_replaces_history_is_not_applied(repository: Repository, open_first: OpenFirst) -> None:
    push = repository.merge(open_first(repository))
    dropped = repository.commit("main", {"manifests/b.yaml": policy("b")})
    result = repository.apply(Push(dropped, push.after))
    assert result.code == 3
    assert "the push replaced the history of main" in result.err


def test_another_checkout_than_the_pushed_commit_is_not_applied(repository: Repository, open_first: OpenFirst) -> None:
    push = repository.merge(open_first(repository))
    result = repository.apply(push, at=push.before)
    assert (result.code, result.err) == (
        3,
        f"error: the checkout is at {push.before}, not at {push.after}, which was pushed\n",
    )


# --- hostile artifacts ------------------------------------------------------------------------------------------------


def archive(**files: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name.replace("_", ".", 1), content)
    return written.getvalue()


def plan_of(repository: Repository) -> Path:
    return repository.forge.artifacts / str(repository.forge.runs[-1].id) / "plan" / "plan.json"


def test_an_artifact_with_an_extra_call_does_not_add_it(
    repository: Repository, sandbox: Sandbox, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    other = open_reviewed(repository, "other", z=policy("z"))
    assert other.number
    extra = plan_json.read_plan(plan_of(repository).read_text(), lambda *_: pytest.fail("there is no secret"))
    file = repository.forge.artifacts / str(repository.forge.runs[0].id) / "plan" / "plan.json"
    plan = plan_json.read_plan(file.read_text(), lambda *_: pytest.fail("there is no secret"))
    changes = [change for change in extra.changes if change.address.name == "z"]
    calls = [call for call in extra.calls if call.address.name == "z"]
    more = replace(plan, changes=(*plan.changes, *changes), calls=(*plan.calls, *calls))
    file.write_text(plan_json.write_plan(more, PLAN_KEY.encode()))
    assert repository.apply(push).code == 0
    assert list_policies(sandbox) == ["a"]


def test_an_artifact_of_another_request_or_repository_is_not_used(
    repository: Repository, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    file = plan_of(repository)
    plan = plan_json.read_plan(file.read_text(), lambda *_: pytest.fail("there is no secret"))
    assert plan.request is not None
    for wrong in (
        replace(plan.request, number=99),
        replace(plan.request, repository="octo/fork"),
        replace(plan.request, base="other"),
        replace(plan.request, head="2" * 40),
        None,
    ):
        file.write_text(plan_json.write_plan(replace(plan, request=wrong), PLAN_KEY.encode()))
        assert repository.apply(push).code == 3
    for other in (
        replace(plan, stack="other"),
        replace(plan, account="https://other"),
        replace(plan, snapshot_time=1.0),
    ):
        file.write_text(plan_json.write_plan(other, PLAN_KEY.encode()))
        assert repository.apply(push).code == 3


def test_gitlab_a_pipeline_of_a_fork_does_not_hide_the_project_s_own(
    make: Callable[[str], Repository], open_first: OpenFirst
) -> None:
    repository = make("gitlab")
    request = open_first(repository)
    repository.forge.runs.append(Run(900, request.head, number=request.number, project="43"))
    assert repository.apply(repository.merge(request)).code == 0


def test_an_artifact_that_was_changed_or_not_signed_is_not_used(repository: Repository, open_first: OpenFirst) -> None:
    push = repository.merge(open_first(repository))
    file = plan_of(repository)
    good = file.read_text()
    for text in (good.replace('"a"', '"b"'), json.dumps({**json.loads(good), "signature": None}), "[]", "\0", ""):
        file.write_text(text)
        result = repository.apply(push)
        assert (result.code, "IPPolicy/a: not reviewed: create" in result.err) == (3, True), result
    file.write_text(good)
    assert repository.apply(push).code == 0


HOSTILE: dict[str, Callable[[], bytes]] = {  # made by the test that needs it
    "a bomb": lambda: archive(plan_json=b"\0" * (65 * 2**20)),
    "no plan": lambda: archive(other_json=b"{}"),
    "a path": lambda: archive(**{"../plan_json": b"{}"}),
    "many files": lambda: archive(**{f"{number}_x": b"" for number in range(1001)}),
    "damaged": lambda: archive(plan_json=b"{}")[:-30],
    "no archive": lambda: b"x" * 1000,
    "empty": bytes,
    "not UTF-8": lambda: archive(plan_json=b"\xff\xfe"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_no_review(
    make: Callable[[str], Repository], forge: Forge, what: str, open_first: OpenFirst
) -> None:
    repository = make("github")
    push = repository.merge(open_first(repository))
    forge.archives[forge.runs[-1].id] = HOSTILE[what]()
    result = repository.apply(push)
    assert result.code == 3
    assert "IPPolicy/a: not reviewed: create\n" in result.err
    assert "#12: the artifact " in result.err


def test_a_download_is_cut_off_at_its_limit(
    make: Callable[[str], Repository], forge: Forge, open_first: OpenFirst
) -> None:
    repository = make("gitlab")
    push = repository.merge(open_first(repository))
    forge.archives[forge.runs[-1].id] = b" " * (65 * 2**20)
    result = repository.apply(push)
    assert result.code == 1
    assert "larger than 64 MB" in result.err


def test_no_plan_file_is_read_from_or_written_to_the_checkout(
    repository: Repository, sandbox: Sandbox, open_first: OpenFirst
) -> None:
    request = open_first(repository)
    decoy = plan_of(repository).read_text()
    repository.commit("topic", {"plan.json": decoy, "manifests/b.yaml": policy("b")})
    request = repository.open("topic")
    push = repository.merge(request)
    project = repository.clone("main")
    before = {file.name for file in project.root.iterdir()}
    assert repository.apply_in(project, push).code == 3
    assert {file.name for file in project.root.iterdir()} - before <= {"state"}


# --- crashes ----------------------------------------------------------------------------------------------------------


def test_a_second_run_of_the_pipeline_changes_nothing(
    repository: Repository, sandbox: Sandbox, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    assert repository.apply(push).code == 0
    again = repository.apply(push)
    assert again.code == 0
    assert sandbox.calls() == []


def test_an_old_run_that_is_repeated_does_not_undo_later_merges(repository: Repository, sandbox: Sandbox) -> None:
    first = repository.merge(open_reviewed(repository, "one", one=policy("one")))
    assert repository.apply(first).code == 0
    second = repository.merge(open_reviewed(repository, "two", two=policy("two")))
    assert repository.apply(second).code == 0
    result = repository.apply(first)
    assert result.code == 3
    assert "IPPolicy/two: not reviewed: delete\n" in result.err
    assert list_policies(sandbox) == ["one", "two"]


@on_each_host
def test_an_expired_artifact_is_missed_and_a_merge_that_changes_nothing_needs_none(
    repository: Repository, forge: Forge, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    forge.expired.add(forge.runs[-1].id)
    result = repository.apply(push)
    assert (result.code, "its pipeline kept no plan, or the plan expired" in result.err) == (3, True)
    repository.commit("docs", {"README.md": "text\n"}, push.before)
    nothing = repository.open("docs")
    repository.git("checkout", "--quiet", "main")
    forge.expired.clear()
    assert repository.apply(push).code == 0
    assert repository.apply(repository.merge(nothing)).code == 0


# --- the plan key -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "message"), [(None, "is not set; --reviewed accepts signed plans only"), ("", "is set, but empty; ")]
)
def test_without_a_plan_key_nothing_is_applied(
    repository: Repository, key: str | None, message: str, open_first: OpenFirst
) -> None:
    push = repository.merge(open_first(repository))
    del repository.environ[plan_key.PLAN_KEY]
    repository.environ |= {} if key is None else {plan_key.PLAN_KEY: key}
    report = repository.apply(push)
    assert report.code == 64
    assert report.err.startswith(f"error: RECONCILER_PLAN_KEY {message}")


class Killed(BaseException):
    """The process dies."""


def kill_next_apply(project: Project, sandbox: Sandbox, number: int) -> None:
    """The next apply of the project dies at this step."""
    left = iter(range(number))

    def die(_point: str, _call: Call) -> None:
        if next(left, None) is None:
            raise Killed

    project.runtime = Runtime(platform=Reachable(sandbox), on_checkpoint=die)


CREDENTIAL = """\
kind: TunnelCredential
name: agent
spec: {description: agent}
deliver: {token: {to_file: secrets/agent}}
"""


@pytest.mark.parametrize("number", only_if(lambda number: number in (3, 9), [1, 3, 5, 7, 9, 12]))
def test_after_a_crash_a_second_run_applies_the_rest(
    make: Callable[[str], Repository], sandbox: Sandbox, tmp_path: Path, number: int
) -> None:
    """With a store: what the first run left looks different from the reviewed plan, and is recognized."""
    repository = make("github")
    repository.environ["RECONCILER_STORE"] = str(tmp_path / "store.db")
    push = repository.merge(open_reviewed(repository, a=policy("a"), b=policy("b"), c=CREDENTIAL))
    project = repository.clone("main")
    kill_next_apply(project, sandbox, number)
    with contextlib.suppress(Killed):
        repository.apply_in(project, push)
    result = repository.apply(push)
    assert result.code == 0, result
    assert list_policies(sandbox) == ["a", "b"]
    (credential,) = sandbox.get("/credentials")["credentials"]
    assert credential["description"] == "agent"
