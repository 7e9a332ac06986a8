"""Accepted drift: which live values are written into the manifests, and which are left to a person."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler import InvalidProject, Runtime, Workspace
from reconciler.model.address import Address
from reconciler.operations import accept_drift
from reconciler.operations.accept_drift import Acceptance
from reconciler.operations.errors import ApprovalRequired, NothingSelected
from reconciler.planning.drift_acceptance import Offer
from reconciler.project import files
from reconciler.testing import Sandbox
from tests.harness.workspaces import open_on

MANIFEST = """\
# The doors.
---
kind: BotUser
name: office
spec: {name: office}
---
kind: IPPolicy
name: office
spec:
  description: Office  # the sign
---
kind: IPPolicy
name: home
spec: {description: Home}
---
kind: TLSEdge
name: office
spec:
  hostports: ["b.example.com:443", "a.example.com:443"]
  ip_restriction:
    ip_policy_ids: [{ref: IPPolicy/home}]
---
kind: ReservedDomain
name: a
spec: {domain: a.example.com}
---
kind: ReservedDomain
name: b
spec: {domain: b.example.com}
---
kind: ReservedDomain
name: c
spec: {domain: c.example.com}
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


class Project:
    """A project on the sandbox, whose manifests are applied as they are written."""

    def __init__(self, root: Path, sandbox: Sandbox) -> None:
        self.root, self._sandbox = root, sandbox
        self.file = root / "manifests" / "all.yaml"

    async def apply(self, manifest: str, settings: str = "") -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(manifest)
        (self.root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\n{settings}")
        result = await self.workspace().apply()
        assert (result.exit_code, result.problems) == (0, ()), result

    def workspace(self) -> Workspace:
        return open_on(self._sandbox, self.root)

    def describe(self, was: str, now: str) -> None:
        """Changes the description of a policy by hand."""
        policies = self._sandbox.get("/ip_policies")["ip_policies"]
        (id,) = [policy["id"] for policy in policies if policy["description"] == was]
        self._sandbox.patch(f"/ip_policies/{id}", {"description": now})

    async def accept(self, **options: Any) -> Acceptance:
        return await self.workspace().accept_drift(**options)


@pytest.fixture
def project(tmp_path: Path, sandbox: Sandbox) -> Project:
    return Project(tmp_path / "project", sandbox)


def messages_of(found: Acceptance) -> list[str]:
    return [f"{declined.subject}: {declined.why}" for declined in found.declined]


async def test_a_value_is_written_into_the_document_of_its_own_resource(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    project.describe("Home", "The new home")
    found = await project.accept()
    expected = MANIFEST.replace("description: Office", "description: The new office").replace(
        "{description: Home}", "{description: The new home}"
    )
    assert found.texts == {"manifests/all.yaml": (MANIFEST, expected)}
    assert sorted(map(str, found.accepted)) == ["IPPolicy/home.description", "IPPolicy/office.description"]
    assert (messages_of(found), found.remaining.changes) == ([], ())
    assert project.file.read_text() == MANIFEST  # nothing is written yet


async def test_drift_of_a_component_is_not_written_into_its_file(project: Project) -> None:
    """Also not into the resource there that has the name which the object has as a whole."""
    file = project.root / "components" / "part.yaml"
    file.parent.mkdir(parents=True)
    policy = "---\nkind: IPPolicy\nname: %s\nspec: {description: %s}\n"
    file.write_text(f"inputs: {{}}\n{policy % ('office', 'Office')}{policy % ('x-office', 'Other')}")
    await project.apply("component: part\nname: x\n")
    project.describe("Office", "The new office")
    found = await project.accept()
    assert found.texts == {}
    assert messages_of(found) == [
        "IPPolicy/x-office.description: components/part.yaml:5:21: no document of the file declares the resource "
        "literally; edit the manifest"
    ]


async def test_the_value_of_an_inline_child_is_written_into_its_entry(project: Project, sandbox: Sandbox) -> None:
    manifest = """\
kind: IPPolicy
name: office
rules:
  lan: {cidr: 203.0.113.0/24, action: allow, description: LAN}
  vpn:
    cidr: 198.51.100.0/24  # the exit
    action: allow
    description: VPN
"""
    await project.apply(manifest)
    for rule in sandbox.get("/ip_policy_rules")["ip_policy_rules"]:
        sandbox.patch(f"/ip_policy_rules/{rule['id']}", {"description": f"{rule['description']} by hand"})
    found = await project.accept()
    expected = manifest.replace("LAN}", "LAN by hand}").replace(": VPN", ": VPN by hand")
    assert (found.texts, messages_of(found)) == ({"manifests/all.yaml": (manifest, expected)}, [])


async def test_a_source_of_a_subscription_is_deleted_with_its_entry_without_a_store(
    project: Project, sandbox: Sandbox
) -> None:
    """Event sources have no owner record: the map lists all of them, so that what is not in it is deleted."""
    manifest = """\
kind: EventSubscription
name: audit
sources:
  made: {type: vault_created.v0}
  gone: {type: vault_deleted.v0}
"""
    await project.apply(manifest)
    shutil.rmtree(project.root / "state")
    sandbox.forget_log()
    await project.apply(manifest)
    assert sandbox.calls() == []
    shutil.rmtree(project.root / "state")
    await project.apply(manifest.replace("  gone: {type: vault_deleted.v0}\n", ""))
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    assert [source["type"] for source in subscription["sources"]] == ["vault_created.v0"]
    sandbox.post(f"/event_subscriptions/{subscription['id']}/sources", {"type": "vault_updated.v0"})
    assert (await project.workspace().drift()).plan.has_drift
    await project.apply(manifest.partition("  made")[0].replace("sources:", "sources: {}"))
    (subscription,) = sandbox.get("/event_subscriptions")["event_subscriptions"]
    assert subscription["sources"] == []


async def test_without_drift_no_file_is_read(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    found = await project.accept(both=True)
    assert (found.texts, found.accepted, messages_of(found), accept_drift.diff(found)) == ({}, [], [], "")


async def test_unselected_and_known_drift_is_not_accepted(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    project.describe("Home", "The new home")
    found = await project.accept(targets=["*/home"])
    assert ([str(offer) for offer in found.accepted], messages_of(found)) == (["IPPolicy/home.description"], [])
    assert [str(change.address) for change in found.remaining.changes] == ["IPPolicy/office"]
    ignored = await project.accept(ignore=["IPPolicy/home.*"])
    assert [str(offer) for offer in ignored.accepted] == ["IPPolicy/office.description"]
    assert (ignored.remaining.changes, ignored.remaining.has_drift) == ((), False)
    every = await project.accept(ignore=["IPPolicy/*.description", "TLSEdge/*"])
    assert (every.accepted, every.remaining.changes, every.remaining.problems) == ([], (), ())


async def test_a_target_that_matches_nothing_is_refused(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    with pytest.raises(NothingSelected, match="IPPolicy/ofice matches nothing"):
        await project.accept(targets=["IPPolicy/ofice"])


async def test_a_value_that_git_changed_too_is_accepted_only_on_request(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    project.file.write_text(MANIFEST.replace("description: Office", "description: Bureau"))
    assert messages_of(await project.accept()) == [
        "IPPolicy/office.description: Git changed it too; --both takes the platform's value"
    ]
    found = await project.accept(both=True)
    assert [after for _, after in found.texts.values()] == [
        MANIFEST.replace("description: Office", "description: The new office")
    ]


async def test_an_accepted_value_counts_as_changed_in_git_until_the_next_update(project: Project) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    accept_drift.write(project.workspace(), await project.accept())
    applied = await project.workspace().apply()
    assert (applied.exit_code, applied.plan.changes) == (0, ())
    project.describe("The new office", "The third office")
    assert messages_of(await project.accept()) == [
        "IPPolicy/office.description: Git changed it too; --both takes the platform's value"
    ]
    await project.workspace().apply()
    project.describe("The new office", "The third office")
    assert [str(offer) for offer in (await project.accept()).accepted] == ["IPPolicy/office.description"]


async def test_an_unordered_list_is_written_in_the_order_of_the_manifest(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    hostports = [f"{name}.example.com:443" for name in ("a", "c", "b")]
    sandbox.patch(f"/edges/tls/{edge['id']}", {"hostports": hostports})
    found = await project.accept()
    ((_, after),) = found.texts.values()
    line = next(line for line in after.splitlines() if "hostports" in line)
    assert [line.index(f"{name}.example.com") for name in ("b", "a", "c")] == sorted(
        line.index(f"{name}.example.com") for name in "abc"
    )
    assert found.remaining.changes == ()


async def test_an_ordered_list_is_written_in_the_order_of_the_platform(project: Project, sandbox: Sandbox) -> None:
    backends = [
        {"kind": "HTTPResponseBackend", "name": name, "spec": {"description": name, "body": name}} for name in "ab"
    ]
    first = {"kind": "FailoverBackend", "name": "f", "spec": {"backends": [
        {"ref": f"HTTPResponseBackend/{name}"} for name in "ab"
    ]}}  # fmt: skip
    await project.apply("---\n".join(f"{json.dumps(document)}\n" for document in (*backends, first)))
    (live,) = sandbox.get("/backends/failover")["backends"]
    sandbox.patch(f"/backends/failover/{live['id']}", {"backends": live["backends"][::-1]})
    found = await project.accept()
    ((before, after),) = found.texts.values()
    assert [
        text.rindex("HTTPResponseBackend/a") < text.rindex("HTTPResponseBackend/b") for text in (before, after)
    ] == [
        True,
        False,
    ]
    assert (messages_of(found), found.remaining.changes) == ([], ())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Office  #", "${{ var.sign }}  #", "manifests/all.yaml:10:16: the value is the expression ${{ … }}; "),
        ("Office  #", "{from_env: SIGN}  #", "manifests/all.yaml:10:16: the value is the expression {from_env: …}; "),
        ("Office  #", "$${{ var.sign }}  #", ""),  # which stands for itself
    ],
)
async def test_an_expression_is_not_overwritten(
    project: Project, sandbox: Sandbox, old: str, new: str, why: str
) -> None:
    manifest = MANIFEST.replace(old, new)
    environ = {**sandbox.environ, "SIGN": "Office"}
    project.file.parent.mkdir(parents=True)
    project.file.write_text(manifest)
    (project.root / "reconciler.yaml").write_text("version: 1\nstack: prod\nvariables: {sign: Office}\n")
    workspace = Workspace.open(project.root, runtime=Runtime(environ=environ, platform=sandbox))
    await workspace.apply()
    project.describe("${{ var.sign }}" if new.startswith("$$") else "Office", "The new office")
    found = await workspace.accept_drift()
    subject = "IPPolicy/office.description"
    assert messages_of(found) == ([f"{subject}: {why}edit the manifest"] if why else [])
    assert [str(offer) for offer in found.accepted] == ([] if why else [subject])
    assert bool(found.texts) is (not why)


async def test_a_list_with_an_expression_is_not_overwritten_and_one_with_a_reference_is(
    project: Project, sandbox: Sandbox
) -> None:
    settings = "variables: {port: 443}\n"
    await project.apply(MANIFEST.replace('"a.example.com:443"', '"a.example.com:${{ var.port }}"'), settings)
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    policies = {policy["description"]: policy["id"] for policy in sandbox.get("/ip_policies")["ip_policies"]}
    restriction = {"enabled": True, "ip_policy_ids": [policies["Office"]]}
    sandbox.patch(f"/edges/tls/{edge['id']}", {"hostports": ["b.example.com:443"], "ip_restriction": restriction})
    found = await project.accept()
    assert [str(offer) for offer in found.accepted] == ["TLSEdge/office.ip_restriction.ip_policy_ids"]
    assert messages_of(found) == [
        "TLSEdge/office.hostports: manifests/all.yaml:19:14: the value is the expression ${{ … }}; edit the manifest"
    ]


@pytest.mark.parametrize(
    ("settings", "manifest", "why"),
    [
        (
            "defaults: {IPPolicy: {spec: {description: Office}}}\n",
            "kind: IPPolicy\nname: office\nspec: {}\n",
            "reconciler.yaml:3:43: the value is set here, outside the manifest; edit reconciler.yaml",
        ),
        (
            "",
            "kind: IPPolicy\nname: the-${{ each.key }}\nfor_each: [a]\nspec: {description: Office}\n",
            "manifests/all.yaml:4:21: no document of the file declares the resource literally; edit the manifest",
        ),
    ],
)
async def test_a_value_that_no_document_contains_is_not_accepted(
    project: Project, sandbox: Sandbox, settings: str, manifest: str, why: str
) -> None:
    await project.apply(manifest, settings)
    project.describe("Office", "The new office")
    found = await project.accept()
    ((_, _, reason),) = [line.partition(": ") for line in messages_of(found)]
    assert (reason, found.texts, found.accepted) == (why, {}, [])
    assert found.remaining.changes != ()


async def test_a_value_of_an_environment_is_reported_with_its_position(project: Project, sandbox: Sandbox) -> None:
    (project.root / "environments").mkdir(parents=True)
    overlay = "IPPolicy/office:\n  spec:\n    description: Staging\n"
    (project.root / "environments" / "staging.yaml").write_text(overlay)
    project.file.parent.mkdir()
    project.file.write_text("kind: IPPolicy\nname: office\nspec: {description: Office}\n")
    (project.root / "reconciler.yaml").write_text("version: 1\nstack: prod\n")
    runtime = Runtime(environ=sandbox.environ, platform=sandbox)
    workspace = Workspace.open(project.root, environment="staging", runtime=runtime)
    await workspace.apply()
    project.describe("Staging", "The new office")
    found = await workspace.accept_drift()
    why = "environments/staging.yaml:3:18: the value is set here, outside the manifest; edit environments/staging.yaml"
    assert (messages_of(found), found.texts, found.accepted) == ([f"IPPolicy/office.description: {why}"], {}, [])


async def test_a_value_that_is_invalid_in_a_manifest_is_skipped_and_others_are_accepted(
    project: Project, sandbox: Sandbox
) -> None:
    await project.apply(MANIFEST)
    project.describe("Home", "The new home")
    (office,) = [policy for policy in sandbox.get("/ip_policies")["ip_policies"] if policy["description"] == "Office"]
    sandbox.delete(f"/ip_policies/{office['id']}")
    sandbox.plant("ip_policies", {**office, "description": "x" * 300})
    found = await project.accept()
    assert [str(offer) for offer in found.accepted] == ["IPPolicy/home.description"]
    (line,) = messages_of(found)
    assert line.startswith("IPPolicy/office.description: the manifest would be invalid: ")
    assert [str(change.address) for change in found.remaining.changes] == ["IPPolicy/office"]


@pytest.mark.parametrize("name", ["description", "metadata"])
async def test_a_value_that_a_default_would_set_again_is_skipped(project: Project, sandbox: Sandbox, name: str) -> None:
    vault_of_it = "kind: Vault\nname: v\nspec: {name: v, description: v}\n"
    manifest = f"kind: IPPolicy\nname: a\nspec:\n  {name}: text\n---\n{vault_of_it}"
    await project.apply(manifest, f"defaults: {{IPPolicy: {{spec: {{{name}: default}}}}}}\n")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    (vault,) = sandbox.get("/vaults")["vaults"]
    emptied = "" if name == "description" else policy["metadata"].replace("text", "", 1).lstrip("\n")
    sandbox.patch(f"/ip_policies/{policy['id']}", {name: emptied})
    sandbox.patch(f"/vaults/{vault['id']}", {"description": "by hand"})
    found = await project.accept()
    assert messages_of(found) == [f"IPPolicy/a.{name}: the field would still differ from the platform"]
    assert [str(offer) for offer in found.accepted] == ["Vault/v.description"]
    assert [after for _, after in found.texts.values()] == [manifest.replace("description: v", "description: by hand")]


ROUTE = """\
kind: HTTPSEdge
name: shop
spec: {hostports: []}
---
kind: HTTPSEdgeRoute
name: all
spec:
  edge_id: {ref: HTTPSEdge/shop}
  match_type: path_prefix
  match: /was
"""


async def test_a_value_is_accepted_although_a_field_with_a_longer_name_still_differs(
    project: Project, sandbox: Sandbox
) -> None:
    await project.apply(ROUTE)
    (edge,) = sandbox.get("/edges/https")["https_edges"]
    (route,) = edge["routes"]
    sandbox.patch(f"/edges/https/{edge['id']}/routes/{route['id']}", {"match": "/now", "description": "by hand"})
    changed = ROUTE.replace("path_prefix", "exact_path").replace("/was", "/was\n  description: ''")
    project.file.write_text(changed)
    found = await project.accept()
    assert messages_of(found) == []
    assert [str(offer) for offer in found.accepted] == ["HTTPSEdgeRoute/all.match", "HTTPSEdgeRoute/all.description"]
    assert [field.path for change in found.remaining.changes for field in change.fields] == ["match_type"]


@pytest.mark.parametrize(
    ("path", "is_within"),
    [
        ("match", True),
        ("match.path", True),
        ("match[0]", True),
        ("match[0].path", True),
        ("match_type", False),
        ("match-type", False),
        ("matches", False),
        ("match1", False),
        ("match_type.match", False),
        ("mat", False),
        ("mat.match", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("above", [(), ("module",), ("module", "inner")])
def test_a_difference_is_one_of_an_offer_only_at_its_path_or_inside(
    above: tuple[str, ...], path: str, is_within: bool
) -> None:
    offer = Offer(Address("HTTPSEdgeRoute", "all"), (*above, "match"), "/")
    assert accept_drift._is_within(".".join((*above, path)), offer) is is_within
    assert not accept_drift._is_within(".".join((*above, "other", path)), offer)


async def test_manifests_that_became_invalid_otherwise_are_an_error(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    workspace = project.workspace()
    (project.root / "manifests" / "other.yaml").write_text("kind: IPPolicy\nname: b\nspec: {descripton: b}\n")
    with pytest.raises(InvalidProject, match="descripton"):
        await workspace.accept_drift()


async def test_a_manifest_that_became_unreadable_is_reported(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    workspace = project.workspace()
    found = await workspace.drift()
    project.file.unlink()
    (project.root / "manifests" / "other.yaml").write_text("kind: IPPolicy\nname: home\nspec: {description: Home}\n")
    accepted = accept_drift.accept(workspace, found.plan, found.snapshot, selects=lambda address: True, both=False)
    assert (accepted.accepted, accepted.texts) == ([], {})
    (line,) = messages_of(accepted)
    assert line.endswith("; edit the manifest")


async def test_accepted_values_are_written_and_the_mode_of_the_file_is_unchanged(
    project: Project, sandbox: Sandbox
) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    project.file.chmod(0o641)
    workspace = project.workspace()
    found = await workspace.accept_drift()
    accept_drift.write(workspace, found)
    assert "The new office" in project.file.read_text()
    assert project.file.stat().st_mode & 0o7777 == 0o641


async def test_no_file_is_written_through_a_symbolic_link(project: Project, sandbox: Sandbox, tmp_path: Path) -> None:
    await project.apply(MANIFEST)
    project.describe("Office", "The new office")
    workspace = project.workspace()
    found = await workspace.accept_drift()
    project.file.rename(tmp_path / "elsewhere.yaml")
    project.file.symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(files.Unreadable):
        accept_drift.write(workspace, found)
    assert (tmp_path / "elsewhere.yaml").read_text() == MANIFEST


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\n", "a\nc\n", ["@@ -1,2 +1,2 @@\n", " a\n", "-b\n", "+c\n"]),
        ("a\r\nb\r\n", "a\r\nc\r\n", ["@@ -1,2 +1,2 @@\n", " a\r\n", "-b\r\n", "+c\r\n"]),
        (
            "a\nb",
            "a\nc",
            ["@@ -1,2 +1,2 @@\n", " a\n", "-b\n\\ No newline at end of file\n", "+c\n\\ No newline at end of file\n"],
        ),
        ("b\n", "\x1b[2Jc\rd\n", ["@@ -1 +1 @@\n", "-b\n", "+\\x1b[2Jc\\rd\n"]),
        ("a\n", "a\n", []),
    ],
)
def test_a_patch_of_two_texts_has_no_control_characters(before: str, after: str, lines: list[str]) -> None:
    head = ["--- a/m.yaml\n", "+++ b/m.yaml\n"] if lines else []
    printed = accept_drift.diff_texts({"m.yaml": (before, after)})
    assert printed == "".join([*head, *lines])
    assert accept_drift.diff_texts({"m.yaml": (before, after), "n.yaml": ("", "")}) == printed


# --- lists of maps in any order ---------------------------------------------------------------------------------------

BACKENDS = """\
kind: HTTPResponseBackend
name: stable
spec: {body: stable}
---
kind: HTTPResponseBackend
name: canary
spec: {body: canary}
---
kind: HTTPResponseBackend
name: other
spec: {body: other}
---
kind: WeightedBackend
name: split
spec:
  backends:
"""
STABLE, CANARY = "{ref: HTTPResponseBackend/stable}", "{ref: HTTPResponseBackend/canary}"
BELOW = f"""\
    - backend_id: {STABLE}   # the stable release
      weight: 95
    - backend_id: {CANARY}   # the canary
      weight: 5
"""
BESIDE = f"""\
    - {{backend_id: {STABLE}, weight: 95}}  # the stable release
    - {{weight: 5, backend_id: {CANARY}}}  # the canary
"""
OTHER_BESIDE = "    - {backend_id: {ref: HTTPResponseBackend/other}, weight: 1}\n"


@pytest.mark.parametrize("by_id", [False, True], ids=["by reference", "by id"])
@pytest.mark.parametrize(
    ("before", "weights", "after"),
    [
        (BELOW, {"canary": 20, "stable": 80}, BELOW.replace("95", "80").replace("5\n", "20\n")),
        (BELOW, {"canary": 5, "stable": 90}, BELOW.replace("95", "90")),
        (BELOW, {"other": 1, "canary": 5, "stable": 95}, BELOW + OTHER_BESIDE),
        (BESIDE, {"other": 1, "canary": 10, "stable": 95}, BESIDE.replace(" 5", " 10") + OTHER_BESIDE),
        (BESIDE, {"canary": 10}, BESIDE.splitlines(keepends=True)[1].replace(" 5", " 10")),
        (BESIDE, {"other": 1, "stable": 90}, BESIDE.splitlines(keepends=True)[0].replace("95", "90") + OTHER_BESIDE),
        (BESIDE, {"other": 1}, OTHER_BESIDE),
        (BESIDE + OTHER_BESIDE, {"other": 1, "canary": 6}, "".join([
            BESIDE.splitlines(keepends=True)[1].replace(" 5", " 6"), OTHER_BESIDE
        ])),
    ],
)  # fmt: skip
async def test_the_weight_of_a_backend_is_changed_where_that_backend_is_written(
    project: Project, sandbox: Sandbox, by_id: bool, before: str, weights: dict[str, int], after: str
) -> None:
    await project.apply(BACKENDS + BESIDE)
    ids = {live["body"]: live["id"] for live in sandbox.get("/backends/http_response")["backends"]}
    if by_id:
        for name in ("stable", "canary"):
            reference = f"{{ref: HTTPResponseBackend/{name}}}"
            before, after = before.replace(reference, ids[name]), after.replace(reference, ids[name])
    await project.apply(BACKENDS + before)
    (live,) = sandbox.get("/backends/weighted")["backends"]
    changed = {ids[name]: weight for name, weight in weights.items()}
    sandbox.patch(f"/backends/weighted/{live['id']}", {"backends": changed})
    found = await project.accept()
    assert (messages_of(found), found.remaining.changes) == ([], ())
    assert [text for _, text in found.texts.values()] == [BACKENDS + after]


async def test_an_item_that_is_written_by_id_is_not_reformatted(project: Project, sandbox: Sandbox) -> None:
    await project.apply(MANIFEST)
    policies = {policy["description"]: policy["id"] for policy in sandbox.get("/ip_policies")["ip_policies"]}
    written = MANIFEST.replace("{ref: IPPolicy/home}", policies["Home"])
    await project.apply(written)
    (edge,) = sandbox.get("/edges/tls")["tls_edges"]
    ids = [policies["Office"], policies["Home"]]
    sandbox.patch(f"/edges/tls/{edge['id']}", {"ip_restriction": {"enabled": True, "ip_policy_ids": ids}})
    found = await project.accept()
    ((_, after),) = found.texts.values()
    assert after == written.replace(policies["Home"], f"{policies['Home']}, {{ref: IPPolicy/office}}")


SERVED = MANIFEST.replace(
    "  ip_restriction:", "  backend: {backend_id: {ref: TunnelGroupBackend/web}}\n  ip_restriction:"
)
OPEN = f"""{SERVED}
---
kind: TunnelGroupBackend
name: web
spec: {{labels: {{app: web}}}}
---
kind: IPPolicyRule
name: home
spec: {{ip_policy_id: {{ref: IPPolicy/home}}, cidr: 203.0.113.0/24, action: allow}}
"""


async def test_values_that_widen_access_are_written_only_with_their_approval(
    project: Project, sandbox: Sandbox
) -> None:
    await project.apply(OPEN)
    (rule,) = sandbox.get("/ip_policy_rules")["ip_policy_rules"]
    sandbox.patch(f"/ip_policy_rules/{rule['id']}", {"cidr": "0.0.0.0/0"})
    found = await project.accept()
    assert {entry.entry_point: entry.after for entry in found.access} == {
        "tls://a.example.com": "0.0.0.0/0",
        "tls://b.example.com": "0.0.0.0/0",
    }
    assert {entry.causes for entry in found.access} == {("IPPolicyRule/home",)}
    assert [approval.flag for approval in found.missing_approvals] == ["--allow widens_access:*=2"]
    with pytest.raises(ApprovalRequired, match="nothing was written: approval required: pass --allow widens_access"):
        accept_drift.write(project.workspace(), found)
    assert project.file.read_text() == OPEN
    allowed = project.workspace().select(allow={("widens_access", "*"): 2})
    accept_drift.write(allowed, await allowed.accept_drift())
    assert project.file.read_text() == OPEN.replace("cidr: 203.0.113.0/24", 'cidr: "0.0.0.0/0"')


async def test_accept_needs_no_approval_of_an_opening_in_git(project: Project) -> None:
    await project.apply(OPEN)
    project.file.write_text(OPEN.replace("203.0.113.0/24", "0.0.0.0/0"))
    project.describe("Office", "The new office")
    found = await project.accept()
    assert ([str(offer) for offer in found.accepted], found.access, found.approvals) == (
        ["IPPolicy/office.description"],
        (),
        (),
    )
