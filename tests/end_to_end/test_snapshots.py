"""`snapshot`, and plans from a snapshot: the same as from the account, without key and network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from msgspec.structs import replace

from reconciler.model.value import Secret
from reconciler.project import snapshots
from reconciler.testing import Sandbox as InProcess
from tests.end_to_end.test_review import run_git
from tests.harness.platform import KEY, Sandbox
from tests.harness.project import Project, policies, resource

SECRET = "canary" + "OfTheLogin"
DOMAIN = resource("ReservedDomain", "shop", domain="shop.example.com")
EDGE = resource("HTTPSEdge", "shop", hostports=["shop.example.com:443"])


def route(client: str = "shop", secret: str = "CLIENT_SECRET") -> dict[str, Any]:
    login = {"issuer": "https://login.example.com", "client_id": client, "client_secret": {"from_env": secret}}
    where = {"edge_id": {"ref": "HTTPSEdge/shop"}, "match_type": "path_prefix", "match": "/"}
    return resource("HTTPSEdgeRoute", "login", **where, oidc=login)


DECLARED = (*policies("office"), DOMAIN, EDGE, route())


def pair() -> tuple[str, str]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@dataclass(frozen=True)
class Signed:
    """The snapshot of an account that is in sync."""

    text: str
    private_key: str
    public_key: str


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    private, public = pair()
    made = Project(tmp_path_factory.mktemp("signed"), capsys=None)  # type: ignore[arg-type]  # see `run`
    made.write("reconciler.yaml", "version: 1\nstack: prod\n")
    made.declare(*DECLARED)
    with InProcess() as account:
        made.use(account)
        made.environ |= {"CLIENT_SECRET": SECRET, "RECONCILER_SNAPSHOT_KEY": private}
        assert made.run("apply", "-y", "--quiet") == 0
        assert made.run("snapshot", "--out", "snapshot.json", "--quiet") == 0
    return Signed((made.root / "snapshot.json").read_text(), private, public)


@pytest.fixture
def stranger(project: Project, signed: Signed) -> Project:
    """The project in the pull request of a fork: no API key, secret, base URL or store, but the public key."""
    project.write("snapshot.json", signed.text)
    project.write("snapshot.pub", signed.public_key)
    project.write("reconciler.yaml", "version: 1\nstack: prod\nsnapshots: {public_key: {from_file: snapshot.pub}}\n")
    project.declare(*DECLARED)
    return project


@pytest.fixture
def trusting(stranger: Project) -> Project:
    """Without a public key."""
    stranger.write("reconciler.yaml", "version: 1\nstack: prod\n")
    return stranger


@pytest.fixture
def connected(on_sandbox: Project) -> Project:
    """A project with an account that is in sync."""
    on_sandbox.environ["CLIENT_SECRET"] = SECRET
    on_sandbox.declare(*DECLARED)
    assert on_sandbox("apply", "-y", "-q").code == 0
    return on_sandbox


def comparable(written: str) -> dict[str, Any]:
    """A plan without the parts that show that it is from a snapshot."""
    plan = json.loads(written)
    plan["problems"] = [problem for problem in plan["problems"] if "planned from a snapshot" not in problem["text"]]
    return {
        key: value for key, value in plan.items() if key not in ("snapshot_time", "created", "integrity", "signature")
    }


def test_a_plan_from_a_snapshot_is_the_plan_from_the_account(connected: Project) -> None:
    assert connected("snapshot", "--out", "snapshot.json").err.endswith(
        "not signed: RECONCILER_SNAPSHOT_KEY is not set.\n"
    )
    connected.declare(*policies("home"), DOMAIN, EDGE, route(client="another"))
    live = connected("plan", "--format", "json").out
    connected.environ.clear()
    connected.write("reconciler.yaml", (connected.root / "reconciler.yaml").read_text() + "store: nowhere.db\n")
    taken = connected("plan", "--snapshot", "snapshot.json", "--format", "json")
    assert taken.code == 0
    assert comparable(taken.out) == comparable(live)
    counts = json.loads(live)["summary"]
    assert (counts["create"], counts["update"], counts["delete"]) == (1, 1, 1)


def test_taking_a_snapshot_sends_nothing_but_get(connected: Project, sandbox: Sandbox) -> None:
    sandbox.forget_log()
    assert connected("snapshot", "--out", "snapshot.json").code == 0
    assert {request["method"] for request in sandbox.log()} == {"GET"}


def test_no_secret_is_in_the_file(signed: Signed) -> None:
    assert SECRET not in signed.text
    assert KEY not in re.findall(r'"([^"]*)"', signed.text)


def test_a_plan_from_a_snapshot_without_the_secret_has_no_changes(stranger: Project) -> None:
    result = stranger("plan", "--snapshot", "snapshot.json", "--detailed-exitcode")
    assert result.code == 0
    assert "No changes. 4 resources match the manifests." in result.out
    assert re.search(r"warning: planned from a snapshot of \d{4}-\d\d-\d\d \d\d:\d\d UTC", result.out)
    age = r"(less than a second|\d+ seconds?)"
    expected = (
        rf"Planned from snapshot snapshot\.json, which is {age} old\.\n1 warning in the plan: planned-from-snapshot\n"
    )
    assert re.fullmatch(expected, result.err)


def test_a_secret_that_is_set_nowhere_counts_as_new(stranger: Project) -> None:
    stranger.declare(*policies("office"), DOMAIN, EDGE, route(secret="OTHER"))
    result = stranger("plan", "--snapshot", "snapshot.json", "--detailed-exitcode")
    assert result.code == 2
    assert "oidc.client_secret" in result.out
    assert "note: the secret of env:OTHER is neither set here nor in the snapshot" in result.err


def test_a_signature_that_was_not_verified_is_reported(trusting: Project) -> None:
    result = trusting("plan", "--snapshot", "snapshot.json")
    assert (
        "note: the snapshot's signature was not verified; set snapshots.public_key in reconciler.yaml\n" in result.err
    )


def test_apply_refuses_a_plan_from_a_snapshot(stranger: Project, sandbox: Sandbox) -> None:
    stranger.declare(*policies("home"))
    sandbox.forget_log()
    assert stranger("plan", "--snapshot", "snapshot.json", "--out", "plan.json").code == 0
    stranger.use(sandbox)
    refused = stranger("apply", "plan.json", "-y")
    assert refused.code == 1
    assert (
        refused.err
        == "error: plan.json was created from a snapshot and cannot be applied; create a plan from the account\n"
    )
    assert sandbox.log() == []


def edit(text: str) -> str:
    return text.replace("shop.example.com", "evil.example.com")


def seal_with_another_key(text: str) -> str:
    """The snapshot with a right digest and the signature of another key."""
    return snapshots.write(snapshots.read(text, "snapshot.json", None), Secret(pair()[0], "env:THEIRS"))


def remove_signature(text: str) -> str:
    return snapshots.write(snapshots.read(text, "snapshot.json", None), None)


def take_at(seconds: float) -> Callable[[str], str]:
    def move(text: str) -> str:
        taken = snapshots.read(text, "snapshot.json", None)
        return snapshots.write(replace(taken, at=time.time() + seconds), None)

    return move


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (edit, "it was changed after it was written"),
        (lambda text: text[: len(text) // 2], "it is not JSON, or is truncated"),
        (lambda _: "[1]", "it is not a snapshot file"),
        (seal_with_another_key, "its signature does not match the project's public key"),
        (remove_signature, "it is not signed"),
    ],
)
def test_a_changed_or_unsigned_snapshot_is_refused(
    stranger: Project, signed: Signed, spoil: Callable[[str], str], message: str
) -> None:
    stranger.write("snapshot.json", spoil(signed.text))
    refused = stranger("plan", "--snapshot", "snapshot.json")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"snapshot.json cannot be used: {message}; ")


@pytest.mark.parametrize(
    ("seconds", "message"), [(-49 * 3600, "it is 2 days old"), (3600, "its time is in the future")]
)
def test_a_snapshot_of_another_time_is_refused(trusting: Project, signed: Signed, seconds: int, message: str) -> None:
    trusting.write("snapshot.json", take_at(seconds)(signed.text))
    refused = trusting("plan", "--snapshot", "snapshot.json")
    assert refused.code == 1
    assert refused.err.startswith(f"snapshot.json cannot be used: {message}; ")


def test_max_age_limits_the_age_of_a_snapshot(trusting: Project, signed: Signed) -> None:
    trusting.write("snapshot.json", take_at(-49 * 3600)(signed.text))
    assert trusting("plan", "--snapshot", "snapshot.json", "--max-age", "3d").code == 0
    assert trusting("plan", "--snapshot", "snapshot.json", "--max-age", "soon").code == 64
    for age in ("3d", "48h"):
        alone = trusting("plan", "--max-age", age)
        assert (alone.code, alone.err) == (64, "error: --max-age requires --snapshot FILE\n")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("stack: other\n", "it belongs to the stack prod, not other"),
        ("stack: prod\nplatform: {account: sales}\n", "it belongs to the account (no name), not sales"),
    ],
)
def test_a_snapshot_of_another_stack_or_account_is_refused(trusting: Project, config: str, message: str) -> None:
    trusting.write("reconciler.yaml", f"version: 1\n{config}")
    refused = trusting("plan", "--snapshot", "snapshot.json")
    assert refused.code == 1
    assert message in refused.err


@pytest.mark.parametrize("key", ["not a key", pair()[1]])
def test_an_invalid_signing_key_is_refused_before_any_request(on_sandbox: Project, sandbox: Sandbox, key: str) -> None:
    on_sandbox.environ["RECONCILER_SNAPSHOT_KEY"] = key
    refused = on_sandbox("snapshot", "--out", "other.json")
    assert refused.code == 1
    assert refused.err.startswith("the value of env:RECONCILER_SNAPSHOT_KEY is not an Ed25519 private key in PEM; ")
    assert key not in refused.err
    assert (sandbox.log(), (on_sandbox.root / "other.json").exists()) == ([], False)


def test_an_invalid_public_key_is_reported_with_its_position(project: Project) -> None:
    project.write("reconciler.yaml", "version: 1\nstack: prod\nsnapshots: {public_key: nonsense}\n")
    refused = project("validate")
    assert refused.code == 1
    assert refused.err.startswith(
        "reconciler.yaml:3:25: snapshots.public_key: is not an Ed25519 public key; create a key"
    )


# --- compared with a base ---------------------------------------------------------------------------------------------

KEPT_KEY = "snapshots: {public_key: {from_file: snapshot.pub}}\n"
GUARD = "guards: {require_approval: [interrupts_traffic]}\n"


@pytest.fixture
def fork(stranger: Project) -> Project:
    """The branch of a fork, whose base requires an approval and a signature."""
    stranger.write("reconciler.yaml", f"version: 1\nstack: prod\n{GUARD}{KEPT_KEY}")
    stranger.write(".gitignore", "snapshot.json\n")
    run_git(stranger, "init", "--quiet", "--initial-branch=main")
    commit_all(stranger)
    run_git(stranger, "checkout", "--quiet", "-b", "review")
    return stranger


def commit_all(project: Project) -> None:
    run_git(project, "add", "--all")
    run_git(project, "commit", "--quiet", "--message=next")


def test_a_fork_is_judged_by_the_rules_of_its_base(fork: Project) -> None:
    fork.write("reconciler.yaml", f"version: 1\nstack: prod\n{KEPT_KEY}")
    fork.declare(*policies("office"), DOMAIN, EDGE)
    commit_all(fork)
    result = fork("plan", "--snapshot", "snapshot.json", "--base", "main", "--fail-on", "approvals")
    assert result.code == 4
    assert result.out.startswith("! This branch loosens a rule: guards.require_approval: ")
    assert re.search("^blocked: HTTPSEdgeRoute/.*: interrupts live traffic$", result.err, re.MULTILINE)
    assert "Changes by this branch: 1 to delete." in result.out


def test_a_fork_that_trusts_another_key_is_refused_a_snapshot_of_that_key(fork: Project) -> None:
    private, public = pair()
    fork.write("snapshot.pub", public)
    commit_all(fork)
    content = json.loads((fork.root / "snapshot.json").read_text())
    taken = snapshots.read(json.dumps(content), "snapshot.json", None)
    (fork.root / "snapshot.json").write_text(snapshots.write(taken, Secret(private, "env:KEY")))
    plan = ("plan", "--snapshot", "snapshot.json")
    assert fork(*plan).code == 0
    refused = fork(*plan, "--base", "main")
    assert (refused.code, "its signature does not match" in refused.err) == (1, True)
    approved = fork(*plan, "--base", "main", "--allow", "loosens_rule:snapshots.public_key=1")
    assert approved.code == 0
    assert approved.out.startswith("! This branch loosens a rule: snapshots.public_key: ")
