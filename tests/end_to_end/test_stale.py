"""A plan file is refused exactly where the platform changed since the plan, with the changes."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.api.clock import MachineClock
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.model.plan import VERSION
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Project, policies, resource

STALE = "error: the platform changed after the plan was created; plan again\n"


def the_only(sandbox: Sandbox, path: str, key: str) -> dict[str, Any]:
    (found,) = sandbox.get(path)[key]
    return dict(found)


def write_plan(project: Project, *words: str) -> None:
    result = project("plan", "--out", "plan.json", "--quiet", *words)
    assert (result.code, result.err) == (0, ""), result


def apply_plan(project: Project, sandbox: Sandbox, *words: str) -> Output:
    """The output of applying the plan file; if it is stale, no call was sent."""
    sandbox.forget_log()
    result = project("apply", "plan.json", "-y", "--quiet", *words)
    assert result.code != 3 or sandbox.calls() == []
    return result.number_ids()


@pytest.fixture
def changed(on_sandbox: Project, sandbox: Sandbox) -> Project:
    """Two policies on the platform, and a plan to change both descriptions."""
    on_sandbox.declare(*policies("a", "b"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(*(resource("IPPolicy", name, description=f"new {name}") for name in "ab"))
    write_plan(on_sandbox)
    return on_sandbox


def policy(sandbox: Sandbox, description: str) -> str:
    found = [policy for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == description]
    assert len(found) == 1
    return f"/ip_policies/{found[0]['id']}"


def test_a_field_that_changed_since_the_plan_is_reported_with_both_values(changed: Project, sandbox: Sandbox) -> None:
    sandbox.patch(policy(sandbox, "a"), {"description": "by hand"})
    assert apply_plan(changed, sandbox) == Output(3, "", f'IPPolicy/a.description: was "a", is now "by hand"\n{STALE}')


def test_a_plan_is_stale_after_a_change_of_a_field_outside_it(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(resource("IPPolicy", "a", description="a", metadata="text"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(resource("IPPolicy", "a", description="b", metadata="text"))
    write_plan(on_sandbox)
    found = the_only(sandbox, "/ip_policies", "ip_policies")
    sandbox.patch(f"/ip_policies/{found['id']}", {"metadata": found["metadata"].replace("text", "words", 1)})
    assert apply_plan(on_sandbox, sandbox) == Output(3, "", f'IPPolicy/a.metadata: was "text", is now "words"\n{STALE}')


def test_a_deleted_object_is_reported(changed: Project, sandbox: Sandbox) -> None:
    sandbox.delete(policy(sandbox, "a"))
    assert apply_plan(changed, sandbox) == Output(3, "", f"IPPolicy/a: ipp_1 was deleted\n{STALE}")


def test_an_object_to_delete_that_was_deleted_already_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a", "b"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(*policies("b"))
    write_plan(on_sandbox)
    sandbox.delete(policy(sandbox, "a"))
    assert apply_plan(on_sandbox, sandbox) == Output(3, "", f"IPPolicy/a: ipp_1 was deleted\n{STALE}")


def test_an_object_that_another_apply_created_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    write_plan(on_sandbox)
    on_sandbox("apply", "-y")
    assert apply_plan(on_sandbox, sandbox) == Output(3, "", f"IPPolicy/a: ipp_1 exists now\n{STALE}")


@pytest.mark.parametrize(
    ("declared", "path", "body", "message"),
    [
        (
            resource("ReservedDomain", "a", domain="a.example.com"),
            "/reserved_domains",
            {"domain": "a.example.com"},
            "ReservedDomain/a: rd_1 exists now, with the same domain, and is not managed by any stack\n",
        ),
        (
            resource("BotUser", "a", name="robot"),
            "/bot_users",
            {"name": "robot"},
            "BotUser/a: bot_1 exists now, with the same name, and is not managed by any stack\n",
        ),
    ],
)
def test_an_object_with_the_same_natural_key_is_reported(
    on_sandbox: Project, sandbox: Sandbox, declared: Any, path: str, body: Any, message: str
) -> None:
    on_sandbox.declare(declared)
    write_plan(on_sandbox)
    sandbox.post(path, body)
    assert apply_plan(on_sandbox, sandbox) == Output(3, "", message + STALE)


def test_an_object_with_the_same_natural_key_below_a_parent_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    edge = resource("HTTPSEdge", "web", hostports=["web.example.com:443"])
    domain = resource("ReservedDomain", "web", domain="web.example.com")
    route = resource("HTTPSEdgeRoute", "root", edge_id={"ref": "HTTPSEdge/web"}, match_type="path_prefix", match="/")
    on_sandbox.declare(domain, edge)
    on_sandbox("apply", "-y")
    on_sandbox.declare(domain, edge, route)
    write_plan(on_sandbox)
    parent = the_only(sandbox, "/edges/https", "https_edges")["id"]
    sandbox.post(f"/edges/https/{parent}/routes", {"match_type": "path_prefix", "match": "/"})
    assert apply_plan(on_sandbox, sandbox) == Output(
        3,
        "",
        "HTTPSEdgeRoute/root: edghtsrt_1 exists now, with the same edge_id and match_type and match, "
        "and is not managed by any stack\n" + STALE,
    )


def test_an_object_with_another_owner_is_reported(changed: Project, sandbox: Sandbox) -> None:
    path = policy(sandbox, "a")
    sandbox.patch(path, {"metadata": sandbox.get(path)["metadata"].replace("prod", "theirs")})
    assert apply_plan(changed, sandbox) == Output(
        3, "", f"IPPolicy/a: ipp_1 was managed by prod IPPolicy/a, is now managed by theirs IPPolicy/a\n{STALE}"
    )


def test_an_object_that_was_protected_since_the_plan_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("apply", "-y")
    on_sandbox.declare(*policies("b"))
    write_plan(on_sandbox)
    on_sandbox.declare({**policies("a")[0], "lifecycle": {"protect": True}})
    on_sandbox("apply", "-y")
    assert apply_plan(on_sandbox, sandbox) == Output(
        3,
        "",
        f"IPPolicy/a: ipp_1 was managed by prod IPPolicy/a, is now managed by prod IPPolicy/a, protected\n{STALE}",
    )


def test_a_deleted_object_that_a_call_refers_to_is_reported(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a"))
    on_sandbox("apply", "-y")
    rule = resource("IPPolicyRule", "lan", ip_policy_id={"ref": "IPPolicy/a"}, cidr="192.0.2.0/24", action="allow")
    on_sandbox.declare(*policies("a"), rule)
    write_plan(on_sandbox)
    sandbox.delete(policy(sandbox, "a"))
    assert apply_plan(on_sandbox, sandbox) == Output(
        3, "", f"IPPolicyRule/lan: ipp_1, which it refers to, was deleted\n{STALE}"
    )


def test_changes_of_objects_outside_the_plan_are_ignored(changed: Project, sandbox: Sandbox) -> None:
    sandbox.post("/ip_policies", {"description": "of somebody else"})
    sandbox.post("/bot_users", {"name": "of somebody else"})
    assert apply_plan(changed, sandbox) == Output(0, "Applied: 2 updated.\n", "")


def test_only_collections_of_the_plan_are_read_before_its_apply(changed: Project, sandbox: Sandbox) -> None:
    (changed.root / "manifests/all.yaml").unlink()
    apply_plan(changed, sandbox)
    reads = [
        request["path"] for request in sandbox.log() if request["method"] == "GET" and request["path"].count("/") == 1
    ]
    assert {path.partition("?")[0] for path in reads} == {"/ip_policies"}


# --- in part ----------------------------------------------------------------------------------------------------------


def test_partial_applies_the_part_of_a_plan_that_is_not_stale(changed: Project, sandbox: Sandbox) -> None:
    sandbox.patch(policy(sandbox, "a"), {"description": "by hand"})
    assert apply_plan(changed, sandbox, "--partial") == Output(
        5,
        "Applied: 1 updated.\n",
        'IPPolicy/a.description: was "a", is now "by hand"\n'
        "skipped: update IPPolicy/a: it changed since the plan was created\n",
    )
    assert {policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"]} == {"by hand", "new b"}


def test_calls_that_need_a_changed_resource_are_skipped(on_sandbox: Project, sandbox: Sandbox) -> None:
    domains = [resource("ReservedDomain", name, domain=f"{name}.example.com") for name in "ab"]
    edges = [resource("TLSEdge", name, hostports=[f"{name}.example.com:443"]) for name in "ab"]
    on_sandbox.declare(*domains, *edges)
    write_plan(on_sandbox)
    sandbox.post("/reserved_domains", {"domain": "a.example.com"})
    assert apply_plan(on_sandbox, sandbox, "--partial") == Output(
        5,
        "Applied: 2 created.\n",
        "ReservedDomain/a: rd_1 exists now, with the same domain, and is not managed by any stack\n"
        "skipped: create ReservedDomain/a: it changed since the plan was created\n"
        "skipped: create TLSEdge/a: it needs a resource that changed\n",
    )
    assert sandbox.calls() == ["POST /reserved_domains", "POST /edges/tls"]


def test_partial_is_stale_if_no_part_of_the_plan_is_left(changed: Project, sandbox: Sandbox) -> None:
    for name in "ab":
        sandbox.patch(policy(sandbox, name), {"description": "by hand"})
    assert apply_plan(changed, sandbox, "--partial").code == 3


def test_partial_requires_a_plan_file(on_sandbox: Project, sandbox: Sandbox) -> None:
    assert on_sandbox("apply", "-y", "--partial") == Output(
        64, "", "error: --partial requires a plan file: `reconciler apply FILE --partial`\n"
    )


# --- the reviewed plan is applied -------------------------------------------------------------------------------------


def write_other_manifest(project: Project) -> None:
    project.declare(resource("IPPolicy", "c", description="written after the review"))


def write_invalid_manifest(project: Project) -> None:
    project.write("manifests/all.yaml", "kind: [")


def remove_manifest(project: Project) -> None:
    (project.root / "manifests/all.yaml").unlink()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (write_other_manifest, "or their variables changed after"),
        (write_invalid_manifest, "cannot be read"),
        (remove_manifest, "or their variables"),
    ],
)
def test_a_reviewed_plan_is_applied_despite_later_changes_of_manifests(
    changed: Project, sandbox: Sandbox, change: Callable[[Project], None], what: str
) -> None:
    change(changed)
    result = apply_plan(changed, sandbox)
    assert (result.code, result.out) == (0, "Applied: 2 updated.\n")
    assert result.err.startswith(f"note: the manifests {what}")
    assert "the plan is applied as it was reviewed, without these changes" in result.err
    assert {policy["description"] for policy in sandbox.get("/ip_policies")["ip_policies"]} == {"new a", "new b"}


def test_targets_are_written_to_the_plan_file(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("a", "b", "c"))
    write_plan(on_sandbox, "--target", "IPPolicy/*", "--exclude", "*/c")
    written = json.loads((on_sandbox.root / "plan.json").read_text())
    assert (written["targets"], written["excludes"]) == (["IPPolicy/*"], ["*/c"])
    assert apply_plan(on_sandbox, sandbox) == Output(0, "Applied: 2 created.\n", "")


@pytest.mark.parametrize(
    ("words", "flags", "them"),
    [
        (("--target", "IPPolicy/a"), "--target", "it"),
        (("--exclude", "IPPolicy/a", "--adopt"), "--exclude and --adopt", "them"),
    ],
)
def test_flags_that_would_change_a_plan_file_are_refused(
    changed: Project, sandbox: Sandbox, words: tuple[str, ...], flags: str, them: str
) -> None:
    assert changed("apply", "plan.json", "-y", *words) == Output(
        64,
        "",
        f"error: {flags} cannot be combined with a plan file; pass {them} to `reconciler plan --out plan.json`\n",
    )


# --- secrets ----------------------------------------------------------------------------------------------------------

EARLIER, LATER = "canary-6e1f9c0d27", "canary-b8a35d4410"
WHERE = [({"from_env": "HOOK"}, "env:HOOK"), ({"from_file": "hook.txt"}, "file:hook.txt")]


def plan_route(project: Project, secret: Any) -> None:
    """A plan for a route that verifies webhooks with a secret, and for a policy without one."""
    project.declare(
        *policies("a"),
        resource("ReservedDomain", "web", domain="web.example.com"),
        resource("HTTPSEdge", "web", hostports=["web.example.com:443"]),
        resource(
            "HTTPSEdgeRoute",
            "root",
            edge_id={"ref": "HTTPSEdge/web"},
            match_type="path_prefix",
            match="/",
            webhook_verification={"provider": "github", "secret": secret},
        ),
    )
    keep(project, EARLIER)
    write_plan(project)


def keep(project: Project, secret: str) -> None:
    project.environ["HOOK"] = secret
    project.write("hook.txt", f"{secret}\n")


@pytest.mark.parametrize("secret", [*(secret for secret, _ in WHERE), EARLIER])
def test_a_plan_file_has_no_secret_and_each_is_read_again_at_the_apply(
    on_sandbox: Project, sandbox: Sandbox, secret: Any
) -> None:
    plan_route(on_sandbox, secret)
    assert EARLIER not in (on_sandbox.root / "plan.json").read_text()
    assert apply_plan(on_sandbox, sandbox) == Output(0, "Applied: 4 created.\n", "")
    (edge,) = sandbox.get("/edges/https")["https_edges"]
    assert edge["routes"][0]["webhook_verification"]["secret"] == EARLIER


@pytest.mark.parametrize(("secret", "source"), WHERE)
def test_secrets_need_no_manifest(on_sandbox: Project, sandbox: Sandbox, secret: Any, source: str) -> None:
    plan_route(on_sandbox, secret)
    write_invalid_manifest(on_sandbox)
    assert apply_plan(on_sandbox, sandbox).code == 0


@pytest.mark.parametrize(("secret", "source"), WHERE)
def test_a_changed_secret_stops_its_object(on_sandbox: Project, sandbox: Sandbox, secret: Any, source: str) -> None:
    plan_route(on_sandbox, secret)
    keep(on_sandbox, LATER)
    problem = f"HTTPSEdgeRoute/root: the secret from {source} changed after the plan was created\n"
    assert apply_plan(on_sandbox, sandbox) == Output(
        3, "", problem + "error: a secret changed after the plan was created; plan again\n"
    )
    assert apply_plan(on_sandbox, sandbox, "--partial").out == "Applied: 3 created.\n"


def test_an_unset_secret_stops_its_object(on_sandbox: Project, sandbox: Sandbox) -> None:
    plan_route(on_sandbox, {"from_env": "HOOK"})
    del on_sandbox.environ["HOOK"]
    result = apply_plan(on_sandbox, sandbox)
    assert result.code == 3
    assert "HTTPSEdgeRoute/root: the secret from env:HOOK cannot be read\n" in result.err


def test_an_ignored_secret_of_the_platform_is_preserved(on_sandbox: Project, sandbox: Sandbox) -> None:
    """Another tool rotates the secret, and the module is written as a whole."""
    plan_route(on_sandbox, EARLIER)
    on_sandbox("apply", "-y")
    (edge,) = sandbox.get("/edges/https")["https_edges"]
    path = f"/edges/https/{edge['id']}/routes/{edge['routes'][0]['id']}/webhook_verification"
    sandbox.put(path, {"enabled": True, "provider": "github", "secret": LATER})
    file = on_sandbox.root / "manifests/all.yaml"
    *others, route = [json.loads(document) for document in file.read_text().split("---\n")]
    route["lifecycle"] = {"ignore": ["webhook_verification.secret"]}
    route["spec"]["webhook_verification"]["enabled"] = False
    on_sandbox.declare(*others, route)
    write_plan(on_sandbox)
    assert LATER not in (on_sandbox.root / "plan.json").read_text()
    assert apply_plan(on_sandbox, sandbox) == Output(0, "Applied: 1 updated.\n", "")
    assert sandbox.get(path)["secret"] == LATER


# --- the file itself --------------------------------------------------------------------------------------------------

UNUSABLE = "plan.json: this plan file cannot be used: "
LONG = "a key that nobody guesses"


def edit(project: Project, **fields: Any) -> None:
    file = project.root / "plan.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.mark.parametrize(
    "field", ["stack", "account", "targets", "calls", "changes", "approvals", "observed", "bindings"]
)
def test_a_plan_file_is_refused_after_any_edit(changed: Project, sandbox: Sandbox, field: str) -> None:
    edit(changed, **{field: "other" if field in ("stack", "account") else ["other"]})
    result = apply_plan(changed, sandbox)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{UNUSABLE}it was changed after it was written; plan again")
    assert changed("show", "plan.json").code == 1


def nest(levels: int) -> Any:
    return [nest(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan["calls"][0].update(body={"description": nest(900)}), "it is nested too deeply"),
        (lambda plan: plan.update(summary=nest(900)), "it is nested too deeply"),
        (lambda plan: plan["forecast"].update(estimated_seconds=float("inf")), "plan: forecast: a number is too large"),
        (lambda plan: plan["forecast"].update(estimated_seconds=10**400), "plan: forecast: a number is too large"),
        (lambda plan: plan["calls"][0].update(body={"n": float("nan")}), "plan: call: nan is not a number that JSON"),
        (lambda plan: plan["calls"][0].update(path=["/ip_policies"]), "plan: call: ['/ip_policies'] is not one of str"),
        (lambda plan: plan["calls"][0].update(address="No/a"), "it contains No/a, whose kind does not exist"),
        (
            lambda plan: plan["changes"][0].update(address="AgentConfig/a"),
            "it contains AgentConfig/a, whose kind does not exist",
        ),
        (
            lambda plan: plan.update(observed={"No/a": plan["observed"]["IPPolicy/a"]}),
            "it contains No/a, whose kind does not exist",
        ),
        (lambda plan: plan["calls"][0].update(needs=["gone"]), "'update IPPolicy/a' needs 'gone', which is not before"),
        (lambda plan: plan["calls"][0].update(needs=["update IPPolicy/b"]), "'update IPPolicy/a' needs 'update IPPo"),
        (lambda plan: plan["calls"][0].update(needs=["update IPPolicy/a"]), "'update IPPolicy/a' needs 'update IPPo"),
        (lambda plan: plan["calls"][1].update(id="update IPPolicy/a"), "two calls have the id 'update IPPolicy/a'"),
    ],
)
def test_an_inconsistent_plan_file_with_the_right_digest_is_refused(
    changed: Project, sandbox: Sandbox, change: Callable[[Any], None], message: str
) -> None:
    file = changed.root / "plan.json"
    plan = json.loads(file.read_text())
    signature = plan.pop("signature")
    del plan["integrity"]
    change(plan)
    spelt = json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.blake2b(spelt, digest_size=16).hexdigest()
    file.write_text(json.dumps({**plan, "integrity": f"blake2b:{digest}", "signature": signature}))
    for result in (apply_plan(changed, sandbox), changed("show", "plan.json"), changed("graph", "--plan", "plan.json")):
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"{UNUSABLE}{message}")
    assert sandbox.calls() == []


def test_a_plan_of_another_stack_is_refused(changed: Project, sandbox: Sandbox) -> None:
    config = changed.root / "reconciler.yaml"
    config.write_text(config.read_text().replace("prod", "test"))
    assert apply_plan(changed, sandbox) == Output(1, "", "error: plan.json is a plan for the stack prod, not test\n")


@pytest.mark.usefixtures("over_socket")
def test_a_plan_for_another_account_is_refused(changed: Project, sandbox: Sandbox) -> None:
    other = sandbox.base_url.replace("127.0.0.1", "localhost")
    changed.environ["RECONCILER_BASE_URL"] = other
    assert apply_plan(changed, sandbox) == Output(
        1, "", f"error: plan.json is a plan for the account {sandbox.base_url}, not {other}\n"
    )


def test_a_plan_for_an_account_of_another_name_is_refused(changed: Project, sandbox: Sandbox) -> None:
    config = changed.root / "reconciler.yaml"
    config.write_text(config.read_text() + "platform: {account: acme}\n")
    assert apply_plan(changed, sandbox) == Output(
        1, "", f"error: plan.json is a plan for the account {sandbox.base_url}, not {sandbox.base_url} (acme)\n"
    )


def test_a_plan_of_another_version_is_refused(changed: Project, sandbox: Sandbox) -> None:
    edit(changed, version=VERSION + 1)
    result = apply_plan(changed, sandbox)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(
        f"{UNUSABLE}its version is {VERSION + 1}, and this release reads version {VERSION}; plan again"
    )


def test_a_signed_plan_file_is_shown_and_applied_with_its_key(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = LONG
    on_sandbox.declare(*policies("a"))
    write_plan(on_sandbox)
    assert LONG not in (on_sandbox.root / "plan.json").read_text()
    assert on_sandbox("show", "plan.json").code == 0
    assert apply_plan(on_sandbox, sandbox) == Output(0, "Applied: 1 created.\n", "")


def test_a_forged_file_with_the_right_digest_is_refused_by_its_signature(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(*policies("forged"))
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = "some other key altogether"
    write_plan(on_sandbox)
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = LONG
    for words in (("apply", "plan.json", "-y"), ("show", "plan.json"), ("graph", "--plan", "plan.json")):
        result = on_sandbox(*words)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"{UNUSABLE}its signature was made with another key;")


def test_with_a_key_a_file_without_signature_is_refused(changed: Project, sandbox: Sandbox) -> None:
    changed.environ["RECONCILER_PLAN_KEY"] = LONG
    result = apply_plan(changed, sandbox)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"{UNUSABLE}it is not signed;")


def test_a_signed_plan_file_is_shown_but_not_applied_without_its_key(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = LONG
    on_sandbox.declare(*policies("a"))
    write_plan(on_sandbox)
    del on_sandbox.environ["RECONCILER_PLAN_KEY"]
    result = on_sandbox("show", "plan.json")
    assert (result.code, result.err) == (0, "note: the signature was not checked: RECONCILER_PLAN_KEY is not set\n")
    assert apply_plan(on_sandbox, sandbox) == Output(
        1, "", "error: plan.json is signed, but RECONCILER_PLAN_KEY is not set\n"
    )


def test_a_short_plan_key_is_refused(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = "short"
    on_sandbox.declare(*policies("a"))
    assert on_sandbox("plan", "--out", "plan.json", "--quiet") == Output(
        64, "", "error: RECONCILER_PLAN_KEY must be at least 16 characters long\n"
    )


def test_an_empty_key_neither_writes_nor_applies_a_plan_file(on_sandbox: Project, sandbox: Sandbox) -> None:
    empty = "error: RECONCILER_PLAN_KEY is set, but empty; set it to at least 16 characters, or unset it\n"
    on_sandbox.declare(*policies("a"))
    write_plan(on_sandbox)
    on_sandbox.environ["RECONCILER_PLAN_KEY"] = ""
    sandbox.forget_log()
    assert on_sandbox("plan", "--out", "other.json", "--quiet") == Output(64, "", empty)
    assert sandbox.log() == []
    assert not (on_sandbox.root / "other.json").exists()
    assert apply_plan(on_sandbox, sandbox) == Output(64, "", empty)
    assert sandbox.log() == []


# --- during the prompt ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A terminal at which a line can be read at once."""

    def __init__(self, answer: Callable[[], str]) -> None:
        super().__init__()
        self._answer = answer
        self._ready = socket.socketpair()
        self._ready[1].send(b"x")

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._ready[0].fileno()

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        for end in self._ready:
            end.close()
        return self._answer()


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Answers the prompt with yes after these seconds, during which a change happens."""

    def set_answer(seconds: float, change: Callable[[], object] = lambda: None) -> None:
        offset = 0.0
        now = MachineClock.now

        def answer() -> str:
            nonlocal offset
            offset = seconds
            change()
            return "yes\n"

        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(MachineClock, "now", lambda clock: now(clock) + offset)

    return set_answer


def test_a_change_before_a_late_answer_to_the_prompt_is_refused(
    changed: Project, sandbox: Sandbox, answer: Callable[..., None]
) -> None:
    path = policy(sandbox, "a")

    def hand_over() -> None:
        sandbox.patch(
            path, {"metadata": owners.write("", Owner("other", Address("IPPolicy", "theirs"), "intent-of-x"))}
        )
        sandbox.patch(policy(sandbox, "b"), {"description": "by hand"})
        sandbox.forget_log()

    answer(61, hand_over)
    result = changed("apply")
    assert result.code == 3
    assert "IPPolicy/theirs" in result.err
    assert 'IPPolicy/b.description: was "b", is now "by hand"' in result.err
    assert sandbox.calls() == []


@pytest.mark.parametrize(("seconds", "reads"), [(59, 0), (61, 1)])
def test_the_plan_is_applied_after_the_prompt_if_nothing_changed(
    changed: Project, sandbox: Sandbox, answer: Callable[..., None], seconds: float, reads: int
) -> None:
    answer(seconds, sandbox.forget_log)
    assert changed("apply").code == 0
    before_the_first_call: list[str] = []
    for request in sandbox.log():
        if request["method"] != "GET":
            break
        before_the_first_call.append(request["path"].partition("?")[0])
    # One list is the check of the owners; the refresh of the plan's objects precedes it.
    assert before_the_first_call == ["/ip_policies"] * (reads + 1)


def test_an_object_with_another_owner_after_a_quick_answer_is_not_updated(
    changed: Project, sandbox: Sandbox, answer: Callable[..., None]
) -> None:
    path = policy(sandbox, "a")
    record = owners.write("", Owner("other", Address("IPPolicy", "theirs"), "intent-of-x"))
    answer(5, lambda: sandbox.patch(path, {"metadata": record}))
    result = changed("apply")
    assert result.code == 5
    assert "is now IPPolicy/theirs of stack other" in result.err + result.out
    assert sandbox.get(path)["description"] == "a"


def test_a_change_by_an_earlier_run_of_the_plan_is_not_reported_at_the_prompt(
    on_sandbox: Project, sandbox: Sandbox, answer: Callable[..., None]
) -> None:
    """The update of the edge succeeded, and the removal of its restriction did not."""
    edge = resource("TLSEdge", "web", hostports=["web.example.com:443"])
    domain = resource("ReservedDomain", "web", domain="web.example.com")
    restricted = {"ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/a"}]}}
    edge["spec"] |= restricted
    on_sandbox.declare(*policies("a"), domain, edge)
    assert on_sandbox("apply", "-y").code == 0
    del edge["spec"]["ip_restriction"]
    edge["spec"]["description"] = "after"
    on_sandbox.declare(*policies("a"), domain, edge)
    on_sandbox("plan", "--out", "plan.json")
    sandbox.fault("DELETE /edges/tls/*/ip_restriction", then="status", status=422, body={"msg": "not today"})
    assert on_sandbox("apply", "plan.json", "-y").code == 5
    answer(61, sandbox.forget_log)
    result = on_sandbox("apply", "plan.json")
    assert (result.code, "is now" in result.err) == (0, False)
    assert [call.split()[0] for call in sandbox.calls()] == ["DELETE"]
