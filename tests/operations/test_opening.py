"""Where a project's store, account and commit are found, and what is refused before a request is sent."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler import InvalidProject, Runtime, Workspace, kinds
from reconciler.model.change import Risk
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Binding, Listing, Snapshot
from reconciler.operations.errors import UnreadableAccount
from reconciler.operations.opening import account_identity, stores
from reconciler.operations.opening.account_reading import without_operation_id
from reconciler.operations.opening.git import GitError, Worktree, open_git, open_own_git, without_network
from reconciler.operations.opening.source import ProjectSource, invalid_project
from reconciler.operations.project_openers import open_to_import, open_without_manifests
from reconciler.project.documents.resolve import Variable
from reconciler.project.settings.config import Config
from reconciler.store.account import AccountMembership
from reconciler.store.errors import MEMORY, StoreError
from reconciler.testing import Sandbox
from tests.harness.builders import at, live, record, snapshot
from tests.harness.workspaces import open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


# --- the store --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "location", "ledger"),
    [
        (None, "{root}/state/reconciler.db", "{root}/state/requests.db"),
        ("here/own.db", "{root}/here/own.db", "{root}/here/requests.db"),
        ("/var/own.db", "/var/own.db", "/var/requests.db"),
        ("postgresql://db/x", "postgresql://db/x", None),
        (MEMORY, MEMORY, None),
    ],
)
def test_the_store_is_below_the_project_by_default(
    tmp_path: Path, store: str | None, location: str, ledger: str | None
) -> None:
    config = Config(tmp_path, "prod", store=store)
    assert stores.store_location(config) == location.format(root=tmp_path)
    assert stores.ledger_path(config) == (Path(ledger.format(root=tmp_path)) if ledger is not None else None)


async def test_a_reading_operation_opens_an_existing_store_and_creates_none(tmp_path: Path) -> None:
    config = Config(tmp_path, "prod")
    async with stores.open_existing_store(config) as store:
        assert store is None
    assert list(tmp_path.iterdir()) == []
    async with stores.open_project_store(config):
        pass
    async with stores.open_existing_store(config) as store:
        assert store is not None
        assert await store.bindings("prod") == {}
    async with stores.open_existing_store(replace(config, store=MEMORY)) as store:
        assert store is None


async def test_a_store_with_only_a_log_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "own.db-wal").write_bytes(b"")
    with pytest.raises(StoreError, match="its database file is missing"):
        async with stores.open_existing_store(Config(tmp_path, "prod", store="own.db")):
            pass


async def test_a_store_in_an_unreadable_folder_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError):
        async with stores.open_existing_store(Config(tmp_path, "prod", store="file/own.db")):
            pass


# --- which account ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "name", "account"),
    [
        ("https://api.example.com", None, "https://api.example.com"),
        ("https://api.example.com:443/v2/", "", "https://api.example.com/v2"),
        ("https://api.example.com:8443", "prod", "https://api.example.com:8443 (prod)"),
    ],
)
def test_an_account_is_identified_by_its_address_and_its_name(base_url: str, name: str | None, account: str) -> None:
    assert account_identity.account_of(base_url, name) == account


HERE = "https://here"
EDGE = live("TLSEdge", "e1", owner=record("TLSEdge/e", {}))


def membership(*witnesses: str, account: str = HERE) -> AccountMembership:
    return AccountMembership(account, witnesses)


@pytest.mark.parametrize(
    ("remembered", "seen", "doubt"),
    [
        (None, snapshot(), ""),
        (membership(), snapshot(), ""),
        (membership("TLSEdge:e1", "TLSEdge:e2"), snapshot(), ""),  # two may have been deleted by hand
        (
            membership("TLSEdge:e1", "TLSEdge:e2", "BotUser:b"),
            snapshot(live("TLSEdge", "e9"), live("BotUser", "e1")),
            "stack prod belongs to https://here, but none of the 3 objects of its last apply exists: "
            "the API key may belong to another account",
        ),
        (membership("TLSEdge:e9", "TLSEdge:e8", "TLSEdge:e1"), snapshot(EDGE), ""),
        (membership("TLSEdge:e9", "TLSEdge:e8", "BotUser:b"), snapshot(cut=["BotUser"]), ""),
        (membership("TLSEdge:e9", "TLSEdge:e8", "Unlisted:b"), snapshot(), ""),
        (membership("TLSEdge:e1", account="https://old"), snapshot(EDGE), ""),
        (
            membership(account="https://old"),
            snapshot(EDGE),
            "stack prod belongs to https://old, but the current account is https://here",
        ),
        (
            membership("TLSEdge:e9", account="https://old"),
            snapshot(EDGE),
            "stack prod belongs to https://old, but the current account is https://here, "
            "and the only object of its last apply does not exist",
        ),
    ],
)
def test_one_object_of_the_last_apply_proves_the_account(
    remembered: AccountMembership | None, seen: Snapshot, doubt: str
) -> None:
    assert account_identity.account_mismatch(remembered, HERE, "prod", seen) == doubt


BOUND = {"BotUser/b": Binding("b1")}


@pytest.mark.parametrize(
    ("remembered", "seen", "deleted", "witnesses"),
    [
        (None, snapshot(), (), ()),
        (None, snapshot(EDGE, live("TLSEdge", "e2")), (), ("TLSEdge:e1",)),
        (None, snapshot(live("TLSEdge", "e1", owner=record("TLSEdge/e", {}, stack="theirs"))), (), ()),
        (None, snapshot(EDGE), ("e1",), ()),
        (None, snapshot(live("BotUser", "b1"), live("BotUser", "b2"), bindings=BOUND), (), ("BotUser:b1",)),
        (None, snapshot(live("Vault", "b1"), bindings=BOUND), (), ()),
        (
            None,
            snapshot(live("HTTPSEdgeRoute", "r", owner=record("HTTPSEdgeRoute/r", {}), parent="e1")),
            (),
            ("HTTPSEdgeRoute:e1/r",),
        ),
        # Of a list that was not read, what was known stays.
        (membership("TLSEdge:e9", "BotUser:b9"), snapshot(cut=["BotUser"]), (), ("BotUser:b9",)),
        (membership("BotUser:b9", account="https://old"), snapshot(cut=["BotUser"]), (), ()),
        (membership("BotUser:b9", "BotUser:b8"), snapshot(cut=["BotUser"]), ("b9",), ("BotUser:b8",)),
        (
            membership("HTTPSEdgeRoute:e1/r", "HTTPSEdgeRoute:r/e1"),
            snapshot(cut=["HTTPSEdgeRoute"]),
            ("r",),
            ("HTTPSEdgeRoute:r/e1",),
        ),
    ],
)
def test_objects_of_the_stack_that_remain_are_recorded(
    remembered: AccountMembership | None, seen: Snapshot, deleted: Collection[str], witnesses: tuple[str, ...]
) -> None:
    found = account_identity.membership(remembered, HERE, "laws", seen, deleted)
    assert found == AccountMembership(HERE, witnesses)


def test_an_object_of_an_agent_identifies_no_account() -> None:
    tunnel = live("AgentTunnel", "t", {"name": "t"})
    seen = Snapshot({"AgentTunnel": Listing((tunnel,))}, {at("AgentTunnel/t"): Binding("t")})
    assert account_identity.membership(None, HERE, "laws", seen, ()).witnesses == ()


def test_a_limited_number_of_objects_is_recorded_and_none_that_the_plan_deletes() -> None:
    edges = [live("TLSEdge", f"e{n:03}", owner=record(f"TLSEdge/e{n:03}", {})) for n in range(105)]
    calls = (
        Call("a", at("TLSEdge/e001"), Verb.DELETE, "/edges/tls/e001", "e001"),
        Call("b", at("TLSEdge/e002"), Verb.UPDATE, "/edges/tls/e002", "e002"),
    )
    found = account_identity.membership_after(None, HERE, Plan("laws", calls=calls), snapshot(*edges)).witnesses
    assert found == tuple(f"TLSEdge:e{n:03}" for n in range(101) if n != 1)


# --- what is read of it -----------------------------------------------------------------------------------------------


def test_reasons_are_compared_without_the_number_of_the_request() -> None:
    assert without_operation_id("op_2x: no, op_3Y") == "op_: no, op_"
    assert without_operation_id("stop_2x") == "stop_2x"


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ({"*": 422}, "nothing could be read from the platform: "),
        ({"/ip_policies": 422, "*": 404}, r"nothing could be read from the platform: .* \(and \d+ more reasons\)"),
        ({"*": 404}, "https://sandbox.* is not the address of the platform's API: none of its paths exists; correct "),
    ],
)
async def test_an_account_of_which_nothing_can_be_read_is_one_error(
    sandbox: Sandbox, tmp_path: Path, statuses: dict[str, int], text: str
) -> None:
    for path, status in statuses.items():
        sandbox.fault(f"GET {path}", then="status", status=status, times=0)
    with pytest.raises(UnreadableAccount, match=f"^{text}") as refused:
        await open_on(sandbox, write_project(tmp_path, policy("a"))).plan()
    assert ("more reasons" in str(refused.value)) is (statuses.keys() != {"*"})


async def test_an_account_of_which_one_list_can_be_read_is_read(sandbox: Sandbox, tmp_path: Path) -> None:
    for kind in kinds.every():
        if kind.name != "IPPolicy":
            sandbox.fault(f"GET {kind.path}", then="status", status=422, times=0)
    seen = await open_on(sandbox, write_project(tmp_path, policy("a"))).take_snapshot()
    assert [name for name in ("Vault", "BotUser", "TLSEdge", "IPPolicy") if seen.of(name).complete] == ["IPPolicy"]


async def test_a_kind_that_only_the_store_records_is_read(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, policy("a")))
    async with (
        stores.open_project_store(workspace.config) as store,
        store.journal("prod", command="apply") as journal,
    ):
        await journal.bind({at("AgentTunnel/s"): Binding("s")})
    assert "AgentTunnel" in (await workspace.take_snapshot()).listings
    assert (await workspace.take_snapshot(only=frozenset({"IPPolicy"}))).listings.keys() == {"IPPolicy"}
    assert (await workspace.take_snapshot(only=frozenset({"AgentTunnel"}))).listings.keys() == {"AgentTunnel"}


async def test_an_account_is_recorded_after_the_first_apply(sandbox: Sandbox, tmp_path: Path) -> None:
    workspace = open_on(sandbox, write_project(tmp_path, policy("a")))
    assert not (await workspace.take_snapshot()).is_remembered
    await workspace.apply()
    seen = await workspace.take_snapshot()
    assert (seen.is_remembered, seen.doubt) == (True, "")


async def test_a_file_of_the_project_is_no_entry_of_a_secret_store(sandbox: Sandbox, tmp_path: Path) -> None:
    deliver = {"token": {"to_vault": {"path": "agents/berlin"}}}
    root = write_project(tmp_path, {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": deliver})
    snapshots = []
    for text in (None, "another secret"):
        if text is not None:
            (root / "secret/agents").mkdir(parents=True)
            (root / "secret/agents/berlin").write_text(text)
        environ = {**sandbox.environ, "VAULT_ADDR": "http://127.0.0.1:1"}
        workspace = Workspace.open(root, runtime=Runtime(environ=environ, platform=sandbox))
        snapshots.append(await workspace.take_snapshot())
    assert [[target.is_there for target in seen.targets.values()] for seen in snapshots] == [[False], [False]]


# --- the project ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "environ", "chosen"),
    [
        (None, {}, None),
        (None, {"RECONCILER_ENV": ""}, None),
        (None, {"RECONCILER_ENV": "eu"}, "eu"),
        ("us", {"RECONCILER_ENV": "eu"}, "us"),
    ],
)
def test_the_environment_of_the_caller_overrides_the_variable(
    environment: str | None, environ: Mapping[str, str], chosen: str | None
) -> None:
    assert ProjectSource(Path(), environment, runtime=Runtime(environ=environ)).chosen_environment == chosen


def test_values_of_variables_are_in_no_repr() -> None:
    source = ProjectSource(Path(), variables={"password": "canary"}, runtime=Runtime(environ={"KEY": "canary"}))
    assert "canary" not in repr(source)


@pytest.mark.parametrize(("given", "location"), [(None, "own.db"), ("other.db", "other.db"), (MEMORY, MEMORY)])
def test_a_caller_may_replace_the_store_of_the_project(tmp_path: Path, given: str | None, location: str) -> None:
    root = write_project(tmp_path, settings="store: own.db\n")
    source = ProjectSource(root, runtime=Runtime(environ={}, store=given, store_scope="fleet"))
    assert (source.read_settings().store, source.read_settings().store_scope) == (location, "fleet")


def test_an_invalid_project_differs_from_other_errors() -> None:
    with pytest.raises(InvalidProject) as inner, invalid_project():
        raise InvalidProject([])
    assert inner.value.__cause__ is None
    with pytest.raises(ValueError, match="no"), invalid_project():
        raise ValueError("no")


def test_an_invalid_address_is_refused(tmp_path: Path) -> None:
    environ = {"RECONCILER_BASE_URL": "https://a b", "RECONCILER_API_KEY": "key-of-the-account"}
    with pytest.raises((UnreadableAccount, InvalidProject)):
        Workspace.open(write_project(tmp_path, policy("a")), runtime=Runtime(environ=environ))


def test_the_settings_of_the_project_apply_to_its_plans_and_requests(sandbox: Sandbox, tmp_path: Path) -> None:
    settings = (
        "guards: {max_delete_percent: 11, max_update_percent: 12, require_approval: [widens_access]}\n"
        "platform: {account: prod}\nagent: {base_url: http://127.0.0.1:4041/}\n"
    )
    root = write_project(tmp_path, policy("a"), settings=settings)
    (root / "reconciler.yaml").write_text(
        (root / "reconciler.yaml").read_text().replace("100000", "77, concurrency: 3")
    )
    spent = ((1.0, 5),)
    workspace = open_on(sandbox, root, now=lambda: 12.5, commit="abc", requests_spent=spent)
    options, account = workspace.options, workspace.account
    assert (options.max_delete_percent, options.max_update_percent) == (11, 12)
    assert (options.require_approval, options.now, options.commit) == (frozenset({Risk.WIDENS_ACCESS}), 12.5, "abc")
    assert (account.requests_per_minute, account.spent, account.agent) == (77, spent, "http://127.0.0.1:4041")
    assert options.requests_per_minute == account.budget
    assert (workspace.parallelism, account.connections) == (3, 3)
    assert account.ledger == root / "state" / "requests.db"
    assert workspace.account_name == f"{sandbox.base_url} (prod)"
    asked = Workspace.open(root, parallelism=9, runtime=workspace.runtime)
    assert (asked.parallelism, asked.account.connections) == (9, 9)


def test_without_a_runtime_the_environment_is_that_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_project(tmp_path, policy("a")))
    monkeypatch.setenv("RECONCILER_BASE_URL", "https://api.example.com/v2/")
    monkeypatch.setenv("RECONCILER_API_KEY", "key-of-the-process")
    workspace = Workspace.open()
    assert workspace.account.base_url == workspace.account_name == "https://api.example.com/v2"
    assert (workspace.account.key.reveal(), workspace.variables) == ("key-of-the-process", {})
    assert abs(workspace.options.now - time.time()) < 600
    (result,) = Workspace.validate()
    assert (result.is_valid, result.resources) == (True, 1)


def test_secrets_of_manifests_are_hidden_in_messages_of_the_platform(sandbox: Sandbox, tmp_path: Path) -> None:
    vault = {"kind": "Vault", "name": "v", "spec": {"name": "v"}}
    value = {"vault_id": {"ref": "Vault/v"}, "name": "s", "value": {"from_env": "CANARY"}}
    root = write_project(tmp_path, vault, {"kind": "Secret", "name": "s", "spec": value})
    runtime = Runtime(environ={**sandbox.environ, "CANARY": "0123456789"}, platform=sandbox)
    account = Workspace.open(root, runtime=runtime).account
    assert [secret.reveal() for secret in account.secrets] == ["0123456789"]


def test_invalid_manifests_do_not_affect_operations_that_do_not_read_them(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, {"kind": "IPPolicy", "name": "a", "spec": {"descripton": "a"}})
    runtime = Runtime(environ=sandbox.environ, platform=sandbox)
    with pytest.raises(InvalidProject):
        open_to_import(ProjectSource(root, runtime=runtime))
    assert open_without_manifests(ProjectSource(root, runtime=runtime)).manifest.declarations == {}
    unknown: Mapping[str, Variable] = {"regoin": "eu"}
    with pytest.raises(InvalidProject, match="regoin"):
        open_without_manifests(ProjectSource(root, variables=unknown, runtime=runtime))


def test_an_import_needs_no_folder_of_manifests(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path)
    (root / "manifests" / "all.yaml").unlink()
    (root / "manifests").rmdir()
    source = ProjectSource(root, runtime=Runtime(environ=sandbox.environ, platform=sandbox))
    assert open_to_import(source).manifest.declarations == {}


# --- Git --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def git(tmp_path: Path) -> Path:
    """A folder with a program `git` that prints how it was started."""
    (tmp_path / "git").write_text(
        '#!/bin/sh\necho "$*"\nenv | sort\ncat\ncase "$*" in *fail) ;; *) exit 0;; esac\necho no >&2; exit 1\n'
    )
    (tmp_path / "git").chmod(0o755)
    return tmp_path


def test_git_gets_the_variables_that_it_needs_and_no_others(git: Path) -> None:
    environ = {"PATH": f"{git}{os.pathsep}{os.environ['PATH']}", "HOME": "/home", "TOKEN": "canary", "ALSO": "1"}
    worktree = Worktree(git, git / ".git", git / ".git")
    with open_git(worktree, environ, 5.0) as opened:
        printed = opened.run("status", "-z", input=b"given").decode()
    command, _, rest = printed.partition("\n")
    assert command.startswith(f"--git-dir={opened.git_dir} --no-pager -c safe.bareRepository=explicit -c ")
    assert command.endswith(" status -z")
    assert rest.endswith("given")
    assert [word for word in ("HOME=", "canary", "ALSO") if word in printed] == []
    own = open_own_git(git, {**environ, "NAMED": "1"}, 5.0, ("https",))
    (git / ".git").mkdir()
    assert "NAMED=1\n" in own.run("status").decode()
    assert "NAMED" not in without_network(own).run("status").decode()


def test_git_lists_the_settings_of_a_repository_once_for_each_content(git: Path) -> None:
    """Each command on the repository opens it, several times."""
    (git / "git").write_text(f'#!/bin/sh\necho "$*" >> {git}/calls\nPATH={os.environ["PATH"]}\nexec git "$@"\n')
    (git / ".git").mkdir()
    worktree = Worktree(git, git / ".git", git / ".git")
    views = []
    for branch in ("main", "main", "other"):
        (git / ".git/config").write_text(f'[branch "x"]\n\tmerge = {branch}\n[http]\n\textraheader = canary\n')
        with open_git(worktree, {"PATH": str(git)}, 5.0) as opened:
            views.append((opened.git_dir / "config").read_text())
    assert views == [f'[branch "x"]\n\tmerge = "{branch}"\n' for branch in ("main", "main", "other")]
    assert (git / "calls").read_text().count(" --list") == 2


def test_the_reason_of_a_failure_of_git_is_reported(git: Path) -> None:
    def run(environ: dict[str, str], timeout: float, *arguments: str) -> None:
        with open_git(Worktree(git, git / ".git", git / ".git"), environ, timeout) as opened:
            opened.run(*arguments)

    with pytest.raises(GitError, match="git is not installed"):
        run({"PATH": str(git / "nowhere")}, 5.0, "status")
    environ = {"PATH": f"{git}{os.pathsep}{os.environ['PATH']}"}
    with pytest.raises(GitError, match=r"^no$"):
        run(environ, 5.0, "fail")
    (git / "git").write_text("#!/bin/sh\nsleep 9 & exec sleep 9\n")
    with pytest.raises(GitError, match=r"^git did not finish within 0\.05 seconds$"):
        run(environ, 0.05, "status")
    (git / "git").write_text("#!/nowhere/at/all\n")
    with pytest.raises(GitError, match=r"nowhere|No such file"):
        run(environ, 5.0, "status")


def test_a_git_in_a_folder_of_the_project_is_not_run(git: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PATH may have `.` or an empty entry."""
    monkeypatch.chdir(git)
    for path in ("", ".", os.pathsep):
        with (
            pytest.raises(GitError, match="git is not installed"),
            open_git(Worktree(git, git / ".git", git / ".git"), {"PATH": path}, 5.0) as opened,
        ):
            opened.run("status")
