"""Files that operations propose and write: agent configurations, imports, snapshots, new projects, traced values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler import InvalidProject, Runtime, Workspace
from reconciler.engine.ports import Refused
from reconciler.model.address import Address
from reconciler.model.change import ChangedBy
from reconciler.model.value import Secret
from reconciler.operations import drift
from reconciler.operations.authoring import (
    agent_config,
    explain_value,
    import_files,
    init_project,
    resource_graph,
    snapshot_files,
)
from reconciler.operations.authoring.init_project import ProjectChoices
from reconciler.operations.errors import (
    IncompleteAgentConfig,
    UnreadableAccount,
    UnusableOutput,
    UnwritableProposal,
)
from reconciler.operations.opening.source import ProjectSource
from reconciler.operations.reporting import Note, OperationEvent
from reconciler.project import files
from reconciler.project.settings.config import Config
from reconciler.testing import Sandbox
from tests.harness.builders import at
from tests.harness.workspaces import Document, domain, open_on, policy, write_project


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def source(root: Path, sandbox: Sandbox | None = None, **environ: str) -> ProjectSource:
    if sandbox is None:
        return ProjectSource(root, runtime=Runtime(environ=environ))
    return ProjectSource(root, runtime=Runtime(environ={**sandbox.environ, **environ}, platform=sandbox))


# --- the configuration of an agent ------------------------------------------------------------------------------------


def agent(name: str = "berlin", /, **spec: Any) -> Document:
    return {"kind": "AgentConfig", "name": name, "spec": spec}


INGRESS = {"kind": "AgentIngress", "name": "connect", "spec": {"domain": "Connect.example.com"}}
TOKEN = {"kind": "TunnelCredential", "name": "t", "spec": {}, "deliver": {"token": {"to_file": "secrets/t"}}}
AT_INGRESS = {"ingress": {"ref": "AgentIngress/connect"}}
SIGNED_IN = {"credential": {"ref": "TunnelCredential/t"}}


async def test_a_configuration_has_the_token_only_on_request(tmp_path: Path) -> None:
    root = write_project(tmp_path, agent(authtoken={"from_env": "TOKEN"}, server_addr="eu.example.com:443"))
    for name in ("berlin", "AgentConfig/berlin"):
        for with_token in (False, True):
            text = await agent_config.render_agent_config(
                source(root, TOKEN="made-up-token"), [name, name], with_token=with_token
            )
            written = yaml.safe_load(text)
            assert (written.get("authtoken"), written["server_addr"]) == (
                "made-up-token" if with_token else None,
                "eu.example.com:443",
            )


async def test_a_configuration_has_the_address_of_the_ingress_unchanged(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, INGRESS, TOKEN, agent(**AT_INGRESS, **SIGNED_IN, region="EU"))
    sandbox.post("/agent_ingresses", {"domain": "another.example.com"})
    with pytest.raises(IncompleteAgentConfig, match=r"is not on the platform; apply first$") as refused:
        await agent_config.render_agent_config(source(root, sandbox), ["berlin"], with_token=False)
    assert str(refused.value).startswith("manifests/all.yaml:5:")
    assert ": AgentConfig/berlin.ingress: AgentIngress/connect " in str(refused.value)
    sandbox.fault("GET /agent_ingresses", then="status", status=422)
    with pytest.raises(UnreadableAccount):
        await agent_config.render_agent_config(source(root, sandbox), ["berlin"], with_token=False)
    await open_on(sandbox, root).apply()
    text = await agent_config.render_agent_config(source(root, sandbox), ["berlin"], with_token=False)
    assert yaml.safe_load(text)["server_addr"].startswith("eu.connect.example.com")


@pytest.mark.parametrize(
    ("more", "regions", "text"),
    [
        ({}, ["eu", "us"], "has not exactly one regional domain; set `region` to one of eu.connect.example.com, us."),
        ({"region": "ap"}, ["eu"], "has no regional domain for ap; set `region` to one of eu.connect.example.com"),
        ({"region": "ap"}, [], r"has no regional domain for ap; set `region` to one of \(none yet\)"),
        ({}, None, r"has not exactly one regional domain; set `region` to one of \(none yet\)"),
        ({}, ["eu"], ""),
    ],
)
async def test_an_ingress_without_one_address_for_the_region_is_refused(
    sandbox: Sandbox, tmp_path: Path, more: Mapping[str, str], regions: list[str] | None, text: str
) -> None:
    root = write_project(tmp_path, INGRESS, TOKEN, agent(**AT_INGRESS, **SIGNED_IN, **more))
    live = sandbox.post("/agent_ingresses", {"domain": "connect.example.com"})
    sandbox.delete(f"/agent_ingresses/{live['id']}")
    names = None if regions is None else [f"{region}.connect.example.com" for region in regions]
    sandbox.plant("agent_ingresses", {**live, "region_domains": names})
    rendering = agent_config.render_agent_config(source(root, sandbox), ["berlin"], with_token=False)
    if text:
        with pytest.raises(IncompleteAgentConfig, match=text):
            await rendering
    else:
        assert yaml.safe_load(await rendering)["server_addr"].startswith("eu.connect.example.com")


@pytest.mark.parametrize(
    ("deliver", "text"),
    [
        ({"token": {"to_file": "secrets/t"}}, "cannot be read: there is no file secrets/t; apply first"),
        (
            {"token": {"to_command": {"run": ["cat"], "check": ["true"]}}},
            "cannot be read: .*; deliver it to_file or to_dotenv, or set authtoken",
        ),
    ],
)
async def test_an_unreadable_token_is_reported_at_its_position(tmp_path: Path, deliver: Document, text: str) -> None:
    root = write_project(tmp_path, {**TOKEN, "deliver": deliver}, agent(**SIGNED_IN))
    with pytest.raises(IncompleteAgentConfig, match=text) as refused:
        await agent_config.render_agent_config(source(root), ["berlin"], with_token=True)
    assert ": AgentConfig/berlin.credential: the token of TunnelCredential/t" in str(refused.value)
    await agent_config.render_agent_config(source(root), ["berlin"], with_token=False)


async def test_a_credential_that_was_created_elsewhere_needs_a_delivery(tmp_path: Path) -> None:
    credential = {"kind": "TunnelCredential", "name": "t", "id": "cr_1", "spec": {}}
    root = write_project(tmp_path, credential, agent(**SIGNED_IN))
    with pytest.raises(IncompleteAgentConfig, match="has no delivery; add `deliver:` to the credential") as refused:
        await agent_config.render_agent_config(source(root), ["berlin"], with_token=True)
    assert str(refused.value).endswith("(manifests/all.yaml:1:1)")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("berlim", "there is no AgentConfig/berlim in the manifests; did you mean berlin?"),
        ("xxxxxxxx", "there is no AgentConfig/xxxxxxxx in the manifests; declare it: kind: AgentConfig"),
    ],
)
async def test_a_configuration_that_is_not_declared_is_refused(tmp_path: Path, name: str, text: str) -> None:
    root = write_project(tmp_path, agent(server_addr="eu.example.com:443"))
    with pytest.raises(IncompleteAgentConfig) as refused:
        await agent_config.render_agent_config(source(root), ["berlin", name], with_token=False)
    assert str(refused.value) == text


async def test_configurations_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    root = write_project(
        tmp_path, agent("a", server_addr="a.example.com:443"), agent("b", server_addr="b.example.com:443")
    )
    with pytest.raises(InvalidProject, match="server_addr"):
        await agent_config.render_agent_config(source(root), ["a", "b"], with_token=False)


async def test_a_configuration_is_written_for_its_owner_only(tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", agent(authtoken={"from_env": "TOKEN"}))
    file = tmp_path / "not" / "yet" / "agent.yml"
    for token in ("made-up-token", "another-token"):
        await agent_config.write_agent_config(source(root, TOKEN=token), ["berlin"], file)
        written = yaml.safe_load(file.read_text())["authtoken"]
        modes = file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777
        assert (written, *modes) == (token, 0o600, 0o700)


async def test_a_configuration_replaces_one_of_other_names_and_an_empty_file(tmp_path: Path) -> None:
    root = write_project(tmp_path, *(agent(name, authtoken={"from_env": "TOKEN"}) for name in ("berlin", "oslo")))
    file = root / "agent.yml"
    file.touch()
    for name in ("berlin", "oslo"):
        await agent_config.write_agent_config(source(root, TOKEN="made-up-token"), [name], file)
        assert file.read_text().startswith(f"# Written by `reconciler agent config {name}`")


def _declare_deliveries(root: Path) -> Path:
    """A project with a token in each type of file, one of them behind a symlink."""
    ways = {
        "file": {"to_file": "secrets/t"},
        "dotenv": {"to_dotenv": {"file": "secrets/.env", "name": "T"}},
        "kubernetes": {"to_kubernetes_secret": {"file": "secrets/k.yaml", "name": "t", "key": "t"}},
        "linked": {"to_file": "linked/t"},
    }
    credentials = [{**TOKEN, "name": name, "deliver": {"token": way}} for name, way in ways.items()]
    write_project(root, agent(authtoken={"from_env": "TOKEN"}), *credentials)
    (root / "real").mkdir()
    (root / "linked").symlink_to("real")
    return root


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("secrets/t", r"overlaps with a delivery: TunnelCredential/file to secrets/t \(manifests/all.yaml:"),
        ("SECRETS/T", "overlaps with a delivery: TunnelCredential/file"),
        ("secrets/t/agent.yml", "overlaps with a delivery: TunnelCredential/file"),
        ("secrets", "overlaps with a delivery: "),
        ("secrets/.env", "overlaps with a delivery: TunnelCredential/dotenv"),
        ("secrets/k.yaml", "overlaps with a delivery: TunnelCredential/kubernetes"),
        ("real/t", "overlaps with a delivery: TunnelCredential/linked"),
        ("to_real", "overlaps with a delivery: TunnelCredential/linked"),
        ("reconciler.yaml", "is reserved: it belongs to the project's settings"),
        ("manifests/all.yaml", "is reserved: it belongs to the project's manifests"),
        ("manifests/new.yaml", "is reserved: it belongs to the project's manifests"),
        (".github/workflows/x.yml", "is reserved: it is part of the CI configuration"),
        (".github/away", "is reserved: it is part of the CI configuration"),
        (".git/hooks/post-checkout", "is reserved: it belongs to Git's own data"),
        ("notes", "exists and was not written by `agent config`; move it away, or use another file"),
    ],
)
async def test_a_configuration_is_not_written_over_anything_else(tmp_path: Path, name: str, text: str) -> None:
    root = _declare_deliveries(tmp_path)
    (root / "notes").write_text("the only copy")
    (root / "to_real").symlink_to("real/t")
    (root / ".github").mkdir()
    (root / ".github/away").symlink_to("../elsewhere")
    before = _read_all(root)
    with pytest.raises(UnusableOutput, match=text):
        await agent_config.write_agent_config(source(root, TOKEN="made-up-token"), ["berlin"], root / name)
    assert _read_all(root) == before


def _read_all(root: Path) -> Mapping[str, bytes | None]:
    """The content of each file, and None for each folder and symlink to nowhere."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


# --- imports ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifests", "folder"),
    [
        (("here", "there"), "here"),
        (("one.yaml", "there"), "there"),
        (("single", "there"), "there"),  # a file, whatever it is called
        (("one.yaml",), "manifests"),
        ((), "manifests"),
    ],
)
def test_an_import_is_written_to_the_first_folder_of_manifests(
    tmp_path: Path, manifests: tuple[str, ...], folder: str
) -> None:
    (tmp_path / "single").write_text("")
    assert import_files.default_folder(Config(tmp_path, "prod", manifests=manifests)) == folder


@pytest.mark.parametrize(
    ("manifests", "folder", "is_read"),
    [
        (("manifests/",), "manifests", True),
        (("manifests",), "manifests/new", True),
        (("manifests",), "manifests-new", False),
        (("manifests/new",), "manifests", False),
        (("a", "b/c"), "b/c/d", True),
    ],
)
def test_a_folder_is_read_if_it_is_one_of_the_project_or_inside(
    tmp_path: Path, manifests: tuple[str, ...], folder: str, is_read: bool
) -> None:
    assert import_files.is_read(Config(tmp_path, "prod", manifests=manifests), folder) is is_read


async def test_an_import_proposes_the_requested_objects(sandbox: Sandbox, tmp_path: Path) -> None:
    for name in ("office", "home"):
        sandbox.post("/ip_policies", {"description": name})
    sandbox.post("/bot_users", {"name": "ci"})
    workspace = open_on(sandbox, write_project(tmp_path))

    def addresses_of(proposal: Any) -> list[str]:
        return sorted(str(imported.address) for imported in proposal.imported)

    assert addresses_of(await workspace.propose_import()) == ["BotUser/ci", "IPPolicy/home", "IPPolicy/office"]
    assert addresses_of(await workspace.propose_import(only=["IPPolicy"])) == ["IPPolicy/home", "IPPolicy/office"]
    chosen = await workspace.propose_import(
        only=["IPPolicy"], selects=lambda address, *_: address.name in ("home", "ci")
    )
    assert addresses_of(chosen) == ["IPPolicy/home"]
    outside = await workspace.propose_import(folder="elsewhere")
    assert (outside.folder, outside.is_read, outside.is_whole) == ("elsewhere", False, True)
    paths = {outside.file_of(imported) for imported in outside.imported}
    assert paths == outside.manifests.keys() == outside.files.keys()
    assert all(path.startswith("elsewhere/") for path in paths)


async def test_objects_of_another_stack_are_proposed_only_on_request(sandbox: Sandbox, tmp_path: Path) -> None:
    theirs = write_project(tmp_path / "theirs", policy("office"))
    (theirs / "reconciler.yaml").write_text("version: 1\nstack: theirs\n")
    await open_on(sandbox, theirs).apply()
    sandbox.post("/ip_policies", {"description": "home"})
    ours = open_on(sandbox, write_project(tmp_path / "ours"))
    proposal = await ours.propose_import()
    assert ([str(item.address) for item in proposal.imported], proposal.owners) == (["IPPolicy/home"], {})
    proposal = await ours.propose_import(from_other_stacks=True)
    assert sorted(str(item.address) for item in proposal.imported) == ["IPPolicy/home", "IPPolicy/office"]
    assert {str(address): owner.stack for address, owner in proposal.owners.items()} == {"IPPolicy/office": "theirs"}


async def test_an_import_extends_manifests_only_on_request(sandbox: Sandbox, tmp_path: Path) -> None:
    for name in ("office", "home"):
        sandbox.post("/ip_policies", {"description": name})
    root = write_project(tmp_path)
    first = await open_on(sandbox, root).propose_import(selects=lambda address, *_: address.name == "office")
    (path,) = import_files.write(root, first.files)
    present = (root / path).read_text()
    assert (root / path).stat().st_mode & 0o777 == 0o644
    workspace = open_on(sandbox, root)
    with pytest.raises(UnwritableProposal, match=f"{path} exists with other content"):
        import_files.write(root, (await workspace.propose_import()).files)
    assert "office" not in "".join((await workspace.propose_import()).manifests.values())
    extended = await workspace.propose_import(append=True)
    assert [str(item.address) for item in extended.imported] == ["IPPolicy/home"]
    with pytest.raises(
        UnwritableProposal, match="name another folder with --out, or add to these manifests with --append"
    ):
        import_files.write(root, extended.files)
    assert (root / path).read_text() == present
    (root / path).chmod(0o640)
    assert import_files.write(root, extended.files, extended.manifests) == {path}
    assert (root / path).read_text().startswith(present)
    assert (root / path).stat().st_mode & 0o777 == 0o640
    assert open_on(sandbox, root).manifest.declarations.keys() == {at("IPPolicy/office"), at("IPPolicy/home")}


async def test_an_import_does_not_change_existing_documents(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path)
    proposal = await open_on(sandbox, root).propose_import(append=True)
    ((path, text),) = proposal.files.items()
    (root / path).write_text("kind: Vault\nname: v\nspec: {name: v}\n")
    with pytest.raises(UnwritableProposal, match=f"{path} cannot be appended to: its last document would change"):
        import_files.write(root, proposal.files, proposal.manifests)
    (root / path).write_text("kind: [\n")
    with pytest.raises(InvalidProject):
        import_files.write(root, proposal.files, proposal.manifests)
    (root / path).write_text("---\n# nothing yet\n")  # an empty document
    assert import_files.write(root, proposal.files, proposal.manifests) == {path}
    assert (root / path).read_text() == text


async def test_invalid_manifests_do_not_exclude_objects_from_an_import(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path, policy("home"))
    workspace = open_on(sandbox, root)
    (root / "manifests" / "all.yaml").write_text("kind: IPPolicy\nname: home\nspec: {color: red}\n")
    with pytest.raises(InvalidProject, match="color"):
        await workspace.propose_import()


async def test_an_import_is_not_written_through_a_link(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path / "project")
    proposal = await open_on(sandbox, root).propose_import(folder="manifests/linked")
    (tmp_path / "elsewhere").mkdir()
    (root / "manifests/linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(files.Unreadable):
        import_files.write(root, proposal.files)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_manifests_that_cannot_be_read_are_not_extended(tmp_path: Path) -> None:
    for path, text in {
        "m/b.yaml": b"b",
        "m/a.yaml": b"a",
        "m/x.yaml": b"\xff",
        "m/services/s.yaml": b"s",
        "m/n.yml": b"n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)
    assert import_files.read_manifests(tmp_path, "m") == {"m/a.yaml": "a", "m/b.yaml": "b", "m/services/s.yaml": "s"}


async def test_an_unexpected_account_is_reported_before_an_import(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, *(policy(name) for name in "abc"))
    with Sandbox() as other:
        await open_on(other, root).apply()
    events: list[OperationEvent] = []
    await open_on(sandbox, root).propose_import(on_event=events.append)
    (note,) = [event.text for event in events if isinstance(event, Note)]
    assert note.startswith("warning: stack prod belongs to ")


# --- new projects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stack"),
    [("shop", "shop"), ("my shop (eu)", "my-shop-eu"), ("._-", "main"), ("é", "main"), ("x" * 70, "x" * 63)],
)
def test_the_default_name_of_a_stack_is_that_of_its_folder(tmp_path: Path, name: str, stack: str) -> None:
    assert init_project.default_stack(tmp_path / name) == stack


@pytest.mark.parametrize(
    ("paths", "host"),
    [
        ({}, "none"),
        ({".github/x": ""}, "github"),
        ({".github": ""}, "none"),
        ({".gitlab-ci.yml": ""}, "gitlab"),
        ({".gitlab-ci.yml/x": ""}, "none"),
        ({".github/x": "", ".gitlab-ci.yml": ""}, "github"),
        ({".git/config": '[remote "origin"]\n\turl = git@gitlab.com:a/b.git\n'}, "gitlab"),
        ({".git/config": '[remote "origin"]\n  url=https://github.com/a/b\n'}, "github"),
        ({".git/config": "[core]\n\tbare = false\n# gitlab.com\n"}, "none"),
        ({".gitlab-ci.yml": "", ".git/config": "url = https://github.com/a\n"}, "gitlab"),
    ],
)
def test_the_code_host_is_that_of_the_repository(tmp_path: Path, paths: Mapping[str, str], host: str) -> None:
    for path, text in paths.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert init_project.default_host(tmp_path) == host


def choices(**changes: Any) -> ProjectChoices:
    fields: dict[str, Any] = {
        "stack": "prod",
        "profile": "specification",
        "base_url": None,
        "host": "none",
        "package": "",
    }
    return ProjectChoices(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, []),
        ({"stack": "a b"}, ["stack"]),
        ({"base_url": "ftp://x"}, ["base_url"]),
        ({"base_url": "https://api.example.com"}, []),
        ({"package": " "}, ["package"]),
        ({"package": "reconciler==1.0"}, []),
        ({"approvers": "nobody"}, ["approvers"]),
        ({"approvers": "@octo/platform"}, []),
        ({"environments": ("eu", "us")}, []),
        ({"environments": ("e u", "us")}, ["environment"]),
        ({"environments": ("eu", "e u")}, ["environment"]),
        ({"environments": ("eu", "eu")}, ["environment"]),
    ],
)
def test_invalid_choices_for_a_new_project_are_reported(changes: dict[str, Any], wrong: list[str]) -> None:
    assert [*init_project.check_choices(choices(**changes))] == wrong


def test_the_address_is_that_of_the_profile_unless_another_is_chosen() -> None:
    assert choices().platform_address is None
    assert str(choices(profile="ngrok").platform_address).startswith("https://api.ngrok")
    assert choices(profile="ngrok", base_url="https://own").platform_address == "https://own"


@pytest.mark.parametrize(
    ("changes", "platform"),
    [
        ({"stack": "true", "host": "none"}, {"base_url": "https://api.example.com"}),
        ({"stack": "0x1F", "host": "github", "base_url": "https://own"}, {"base_url": "https://own"}),
        ({"stack": "a.b-c_d", "host": "gitlab", "profile": "ngrok"}, {"profile": "ngrok"}),
        (
            {"stack": "NULL", "host": "none", "profile": "ngrok", "base_url": "https://own"},
            {"profile": "ngrok", "base_url": "https://own"},
        ),
    ],
)
def test_a_new_project_file_has_the_chosen_settings(
    tmp_path: Path, changes: dict[str, Any], platform: Document
) -> None:
    init_project.write_project(tmp_path, choices(**changes), example=False)
    written = yaml.safe_load((tmp_path / "reconciler.yaml").read_text())
    assert (written["stack"], written["manifests"]) == (changes["stack"], ["manifests/"])
    assert written["platform"] == {**platform, "api_key": {"from_env": "RECONCILER_API_KEY"}}
    has_pipelines = changes["host"] != "none"
    assert ("guards" in written, (tmp_path / ".github").exists()) == (has_pipelines, changes["host"] == "github")


def test_the_stack_of_an_environment_is_short_enough(tmp_path: Path) -> None:
    init_project.write_project(tmp_path, choices(stack="s" * 63, environments=("eu", "staging")), example=True)
    for name in ("eu", "staging"):
        stack = yaml.safe_load((tmp_path / f"environments/{name}.yaml").read_text())["stack"]
        assert (len(stack), stack.rstrip("s"), stack.endswith(f"-{name}")) == (63, stack, True)
    assert init_project.default_environments(tmp_path) == ("eu", "staging")
    results = Workspace.validate(tmp_path, runtime=Runtime(environ={}))
    assert [(result.environment, result.is_valid) for result in results] == [
        (None, True),
        ("eu", True),
        ("staging", True),
    ]


@pytest.mark.parametrize(
    ("existing", "example", "files_written"),
    [
        ({}, True, {"manifests/access.yaml"}),
        ({}, False, {"manifests/.gitkeep"}),
        ({"reconciler.yaml": "version: 1\nstack: a\n"}, True, set()),
        ({"manifests/own/a.yml": ""}, True, set()),
        ({"manifests/README": ""}, True, {"manifests/access.yaml"}),
    ],
)
def test_an_example_is_written_only_to_an_empty_project(
    tmp_path: Path, existing: Mapping[str, str], example: bool, files_written: set[str]
) -> None:
    for path, text in existing.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    written = init_project.write_project(tmp_path, choices(), example=example).files
    assert {path for path in written if path.startswith("manifests/")} == files_written
    assert {path for path, is_new in written.items() if not is_new} == existing.keys() & written.keys()
    assert all((tmp_path / path).stat().st_mode & 0o777 == 0o644 for path, is_new in written.items() if is_new)


@pytest.mark.parametrize(
    ("existing", "place"),
    [
        ((), ".github/CODEOWNERS"),
        (("docs/CODEOWNERS",), "docs/CODEOWNERS"),
        (("docs/CODEOWNERS", "CODEOWNERS"), "CODEOWNERS"),
    ],
)
def test_code_owners_are_written_where_the_host_reads_them(
    tmp_path: Path, existing: tuple[str, ...], place: str
) -> None:
    for path in existing:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("* @me\n")
    assert init_project.find_code_owners(tmp_path, "github") == (place if existing else None)
    assert init_project.find_code_owners(tmp_path, "none") is None
    chosen = choices(host="github", approvers="@octo/platform")
    written = init_project.write_project(tmp_path, chosen, example=False).files
    assert {path: is_new for path, is_new in written.items() if "CODEOWNERS" in path} == {place: not existing}
    assert ("@octo/platform" in (tmp_path / place).read_text()) is (not existing)


@pytest.mark.parametrize("host", ["github", "gitlab"])
def test_a_second_file_of_code_owners_has_an_owner_too(tmp_path: Path, host: str) -> None:
    """A host uses one of them: in GitLab a new one at the root would replace that in `.gitlab`."""
    chosen = choices(host=host, approvers="@octo/platform")
    init_project.write_project(tmp_path, chosen, example=False)
    lines = (tmp_path / f".{host}" / "CODEOWNERS").read_text().splitlines()
    for path in ("CODEOWNERS", "docs/CODEOWNERS", f".{host}/CODEOWNERS"):
        assert f"/{path} @octo/platform" in lines


def test_gitlab_reads_the_code_owners_at_the_root(tmp_path: Path) -> None:
    for path in ("docs/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("* @me\n")
    assert init_project.find_code_owners(tmp_path, "gitlab") == "CODEOWNERS"


def test_missing_patterns_of_a_gitignore_are_reported(tmp_path: Path) -> None:
    ignored = tmp_path / ".gitignore"
    all_of_them = init_project.write_project(tmp_path, choices(), example=False)
    assert all_of_them.unignored == ()
    lines = ignored.read_text().splitlines()
    ignored.write_text("\n".join(["**/state/**", "secrets", *lines[3:]]))
    assert init_project.write_project(tmp_path, choices(), example=False).unignored == (".env",)
    ignored.unlink()
    ignored.mkdir()
    assert init_project.write_project(tmp_path, choices(), example=False).unignored == ()


async def test_a_key_is_tested_at_the_chosen_address(sandbox: Sandbox) -> None:
    runtime = Runtime(platform=sandbox)
    await init_project.try_key(f"{sandbox.base_url}/", "specification", Secret(sandbox.api_key, "env:KEY"), runtime)
    assert [f"{entry['method']} {entry['path']}" for entry in sandbox.log()] == ["GET /ip_policies?limit=1"]
    with pytest.raises(Refused):
        await init_project.try_key(sandbox.base_url, "specification", Secret("wrong-key", "env:KEY"), runtime)


# --- what a value comes from ------------------------------------------------------------------------------------------


def test_the_longest_declared_address_is_found_in_a_text(tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"), policy("a.b"), agent(server_addr="a.example.com:443"))
    values = explain_value.read_values(source(root))
    assert values.find("IPPolicy/a.b.description") == (at("IPPolicy/a.b"), ("description",))
    assert values.find("IPPolicy/a.description") == (at("IPPolicy/a"), ("description",))
    assert values.find("IPPolicy/a") == (at("IPPolicy/a"), ())
    assert values.find("AgentConfig/berlin") == (Address("AgentConfig", "berlin"), ())
    assert (values.find("IPPolicy/c.description"), values.find("Vault/a")) == (None, None)


async def test_live_values_are_shown_with_what_changed_them(sandbox: Sandbox, tmp_path: Path) -> None:
    root = write_project(tmp_path, policy("a"), policy("b"))
    values = explain_value.read_values(source(root))
    workspace = open_on(sandbox, root)
    where, traces = at("IPPolicy/a"), values.trace(at("IPPolicy/a"), ())
    assert [trace.path for trace in traces] == ["description"]
    (live,) = await explain_value.read_live_values(workspace, where, traces)
    assert live is not None
    assert (live.value, live.changed_by) == (None, None)  # it does not exist yet
    await workspace.apply()
    (live,) = await explain_value.read_live_values(workspace, where, traces)
    assert live is not None
    assert (live.value, live.changed_by) == ("a", None)
    (id,) = [policy["id"] for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == "a"]
    sandbox.patch(f"/ip_policies/{id}", {"description": "by hand"})
    (live,) = await explain_value.read_live_values(workspace, where, traces)
    assert live is not None
    assert (live.value, live.changed_by) == ("by hand", ChangedBy.PLATFORM)
    sandbox.fault("GET /ip_policies", times=0, then="status", status=422)
    events: list[OperationEvent] = []
    assert await explain_value.read_live_values(workspace, where, traces, on_event=events.append) == [None]
    assert [event.text.partition(": ")[0:2] for event in events if isinstance(event, Note)] == [("note", ": ")]


def test_dependencies_follow_references_names_and_hosts(tmp_path: Path) -> None:
    edge = {
        "kind": "TLSEdge",
        "name": "e",
        "spec": {"hostports": ["a.example.com:443"], "ip_restriction": {"ip_policy_ids": [{"ref": "IPPolicy/p"}]}},
    }
    root = write_project(tmp_path, domain("a"), domain("b"), policy("p"), edge)
    dependencies = resource_graph.read_dependencies(source(root))
    assert {str(address): {*map(str, needs)} for address, needs in dependencies.items() if needs} == {
        "TLSEdge/e": {"IPPolicy/p", "ReservedDomain/a"}
    }
    assert dependencies.keys() == {at("TLSEdge/e"), at("IPPolicy/p"), at("ReservedDomain/a"), at("ReservedDomain/b")}


# --- existing files are not overwritten -------------------------------------------------------------------------------


async def test_an_import_writes_nothing_if_a_file_has_other_content(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    root = write_project(tmp_path / "project")
    proposal = await open_on(sandbox, root).propose_import(folder="manifests/new")
    (path,) = proposal.files
    assert (proposal.is_read, proposal.owners) == (True, {})
    assert import_files.write(root, proposal.files) == {path}
    assert import_files.write(root, proposal.files) == frozenset()
    (root / path).write_text("kind: IPPolicy\nname: other\nspec: {}\n")
    with pytest.raises(UnwritableProposal, match=f"{path} exists with other content"):
        import_files.write(root, proposal.files)


async def test_a_plan_from_a_snapshot_file_is_the_plan_of_the_account(sandbox: Sandbox, tmp_path: Path) -> None:
    root, file = write_project(tmp_path / "project", policy("a")), tmp_path / "snapshot.json"
    workspace = open_on(sandbox, root)
    written = await snapshot_files.write_snapshot(workspace, file, None)
    assert (written.objects, written.is_signed, written.incomplete) == (0, False, {})
    source = ProjectSource(root, runtime=Runtime(environ={}))
    opened = snapshot_files.open_with_snapshot(source, file, max_age=60)
    plan = snapshot_files.plan_offline(opened.project, opened.snapshot_file)
    assert (opened.is_verified, plan.changes) == (False, (await workspace.plan()).plan.changes)
    late = ProjectSource(root, runtime=Runtime(environ={}, now=lambda: opened.snapshot_file.at + 61))
    with pytest.raises(InvalidProject, match="old"):
        snapshot_files.open_with_snapshot(late, file, max_age=60)


async def test_unmanaged_objects_have_the_address_that_an_import_proposes(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.post("/ip_policies", {"description": "office"})
    workspace = open_on(sandbox, write_project(tmp_path / "project"))
    found = await workspace.drift()
    unmanaged = drift.list_unmanaged(found.plan, found.snapshot, workspace.manifest)
    assert ([str(address) for address, _ in unmanaged.objects], unmanaged.stacks) == (["IPPolicy/office"], {})


async def test_an_agent_that_is_not_declared_has_no_configuration(tmp_path: Path) -> None:
    source = ProjectSource(write_project(tmp_path / "project"), runtime=Runtime(environ={}))
    with pytest.raises(IncompleteAgentConfig, match="there is no AgentConfig/berlin in the manifests"):
        await agent_config.render_agent_config(source, ["berlin"], with_token=False)


def test_a_new_project_does_not_overwrite_existing_files(tmp_path: Path) -> None:
    choices = init_project.ProjectChoices("prod", "specification", None, "none", "")
    (tmp_path / ".gitignore").write_text("/state/\n")
    first = init_project.write_project(tmp_path, choices, example=True)
    assert (first.files[".gitignore"], first.files["reconciler.yaml"]) == (False, True)
    assert "/secrets/" in first.unignored
    assert (tmp_path / ".gitignore").read_text() == "/state/\n"
    assert not any(init_project.write_project(tmp_path, choices, example=True).files.values())
