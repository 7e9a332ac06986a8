"""Loading manifests: declarations, deliveries, files and positions. Invalid manifests are in `mistakes/manifests`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.address import Address
from reconciler.model.manifest import Delivery, Ensure, Lifecycle
from reconciler.model.problem import Position, Rejected
from reconciler.project.manifests.load import digest_of, load_manifests
from reconciler.project.settings.config import Config, load_config
from tests.project.texts import ProjectFolder, deliver_each, load, load_one, load_texts, problem_lines


def test_all_keys_of_a_manifest_are_read() -> None:
    declared = load_one("""\
        kind: TunnelCredential
        name: berlin
        id: cr_1
        ensure: forgotten
        moved: [TunnelCredential/old, TunnelCredential/older]
        lifecycle: {protect: true, ignore: [description], adopt: true, replace: false}
        deliver: {token: {to_file: secrets/berlin}}
        spec:
          acl: ["bind:*.example.com"]
    """)
    assert declared.address == Address("TunnelCredential", "berlin")
    assert declared.spec == {"acl": ["bind:*.example.com"]}
    assert declared.id == "cr_1"
    assert declared.ensure is Ensure.FORGOTTEN
    assert declared.moved == (Address("TunnelCredential", "old"), Address("TunnelCredential", "older"))
    assert declared.lifecycle == Lifecycle(protect=True, ignore=["description"], adopt=True, replace=False)
    assert declared.deliver == {"token": Delivery("to_file", "secrets/berlin", Position("a.yaml", 7, 18))}
    assert declared.at("acl", 0) == Position("a.yaml", 9, 9)


def test_variables_are_substituted_in_deliveries(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").write_text(
        "stack: s\nplatform: {base_url: https://a.example.com, api_key: {from_env: KEY}}\n"
        "variables: {city: berlin, key: {from_env: KEY}, number: 5}\n"
    )
    (tmp_path / "manifests").mkdir()

    def load(target: str, **overrides: str) -> Delivery | list[str]:
        text = f"kind: TunnelCredential\nname: t\ndeliver: {{token: {{{target}}}}}\n"
        (tmp_path / "manifests/a.yaml").write_text(text)
        environ = {"KEY": "a-key-of-the-platform"}
        try:
            loaded = load_manifests(load_config(tmp_path, environ), environ, overrides)
        except Rejected as rejected:
            return [str(problem) for problem in rejected.problems if problem.is_error]
        return loaded.manifest.declarations[Address("TunnelCredential", "t")].deliver["token"]

    vault = load("to_vault: {path: 'agents/${{ lower(var.city) }}', key: 'key-${{ var.number }}'}")
    assert isinstance(vault, Delivery)
    assert (vault.target, vault.settings["key"]) == ("secret/agents/berlin", "key-5")
    command = load("to_command: {run: [put, '${{ var.city }}']}", city="paris")
    assert isinstance(command, Delivery)
    assert command.settings["run"] == ["put", "paris"]
    position = "manifests/a.yaml:3:28: TunnelCredential/t.deliver.token.to_file: "
    refused = "a target cannot contain a reference or a secret; use only variables of the project: ${{ var.NAME }}"
    assert load("to_file: 'a/${{ IPPolicy/x.id }}'") == [position + refused]
    assert load("to_file: 'a/${{ TunnelCredential/t.id }}'") == [position + refused]
    assert load("to_file: 'a/${{ var.city }}'", city="../../b") == [
        position + "a/../../b contains '..'; only paths below the project's root are allowed"
    ]
    lines = load("to_file: 'a/${{ var.key }}'")
    assert isinstance(lines, list)
    assert lines
    assert "a-key-of-the-platform" not in str(lines)


def test_each_instance_delivers_its_secret_to_a_file_of_its_own() -> None:
    text = """
        kind: TunnelCredential
        name: ${{ each.key }}
        for_each: [madrid, lisbon]
        deliver: {token: {to_file: 'secrets/${{ each.key }}'}}
    """
    assert len(load(text).manifest.declarations) == 2


def test_commands_entries_and_absent_resources_share_no_target() -> None:
    entries = [f"to_dotenv: {{file: .env, name: {name}}}" for name in "AB"]
    text = deliver_each(*(f"to_command: {{run: [put, {name}]}}" for name in "ab"), *entries, "to_file: token")
    gone = "kind: TunnelCredential\nname: gone\nensure: absent\ndeliver: {token: {to_file: token}}\n"
    assert len(load(text + gone).manifest.declarations) == 6


def write_linked_project(root: Path, credential: str, more: str = "") -> Config:
    """A project whose `manifests` is a link to `src`, with a delivery of a credential to this path."""
    for folder in ("src", "lib", "data"):
        (root / folder).mkdir()
    for link, target_path in {
        "manifests": "src",
        "state": "data",
        "src/b.yaml": "../lib/b.yaml",
        "noted": "notes",
    }.items():
        (root / link).symlink_to(target_path)
    (root / "lib/b.yaml").write_text("{kind: IPPolicy, name: b, spec: {description: {from_file: noted}}}")
    (root / "notes").write_text("ours")
    (root / "src/a.yaml").write_text(deliver_each(f"to_file: {credential}"))
    (root / "reconciler.yaml").write_text(f"stack: prod\n{more}")
    return load_config(root, {})


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("src/access.yaml", "manifests"),
        ("manifests/access.yaml", "manifests"),
        ("lib/b.yaml", "manifests"),
        ("data/reconciler.db-wal", "store"),
        ("notes", "manifests, which read it with from_file"),
        ("words", "settings, which read it with from_file"),
    ],
)
def test_a_delivery_to_a_linked_file_of_the_project_is_refused(tmp_path: Path, target: str, what: str) -> None:
    (tmp_path / "words").write_text("ours")
    read = write_linked_project(tmp_path, target, "variables: {words: {from_file: words}}")
    with pytest.raises(
        Rejected,
        match=f"delivered to {target}, which is reserved: it belongs to the project's {what}; use another file",
    ):
        load_manifests(read, {})


def test_a_delivery_may_replace_the_file_of_the_api_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    assert load_manifests(
        write_linked_project(tmp_path, "key", "platform: {api_key: {from_file: key}}"), {}
    ).manifest.declarations


def test_an_absent_resource_needs_no_fields() -> None:
    assert load_one("kind: ReservedDomain\nname: a\nensure: absent\n").ensure is Ensure.ABSENT


def test_a_route_named_by_id_needs_no_match() -> None:
    assert load_one("kind: HTTPSEdgeRoute\nname: r\nid: edghtsrt_1\nspec: {edge_id: edghts_1}").id == "edghtsrt_1"


def test_an_ignored_secret_is_not_required() -> None:
    text = """
        kind: EventDestination
        name: vendor
        id: ed_1
        lifecycle: {ignore: [target.metrics.api_key]}
        spec: {target: {metrics: {service: edge}}}
    """
    assert load_one(text).spec == {"target": {"metrics": {"service": "edge"}}}


def test_a_credential_with_an_id_needs_no_sink() -> None:
    assert load("{kind: TunnelCredential, name: agent, id: cr_1, spec: {}}").warnings == ()


def test_metadata_must_leave_room_for_the_owner_record() -> None:
    assert problem_lines(f"kind: IPPolicy\nname: a\nspec: {{metadata: {'x' * 4090}}}") == [
        "a.yaml:3:18: IPPolicy/a.metadata: has 4090 bytes; 3930 are available beside the owner record;"
        " shorten it by 160 bytes"
    ]


# --- on disk ----------------------------------------------------------------------------------------------------------


def write_project(root: Path, files: Mapping[str, str]) -> Config:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Config(root, "prod")


def test_folders_of_manifests_are_read_recursively_and_in_order(tmp_path: Path) -> None:
    config = write_project(
        tmp_path,
        {
            "manifests/b.yaml": "kind: IPPolicy\nname: b\n",
            "manifests/a/z.yml": "kind: IPPolicy\nname: z\n---\n---\nkind: IPPolicy\nname: y\n",
            "manifests/.hidden.yaml": "broken: [",
        },
    )
    loaded = load_manifests(config, {})
    assert [str(declaration) for declaration in loaded.manifest.declarations] == [
        "IPPolicy/z",
        "IPPolicy/y",
        "IPPolicy/b",
    ]
    assert loaded.files == ("manifests/a/z.yml", "manifests/b.yaml")


def test_a_folder_without_manifests_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    loaded = load_manifests(Config(tmp_path, "prod"), {})
    assert loaded.manifest.is_empty
    assert [str(warning) for warning in loaded.warnings] == [
        (
            "reconciler.yaml:1:1: warning: no manifests (*.yaml, *.yml) in manifests; "
            "add a manifest, or correct manifests: in reconciler.yaml"
        )
    ]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as caught:
        load_manifests(Config(tmp_path, "prod"), {})
    assert (
        str(caught.value) == "reconciler.yaml:1:1: there is no file manifests; paths are relative to the project's root"
    )


def test_a_manifest_that_links_outside_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("kind: IPPolicy\nname: a\n")
    config = write_project(tmp_path / "root", {"manifests/b.yaml": "kind: IPPolicy\nname: b\n"})
    (tmp_path / "root/manifests/a.yaml").symlink_to(tmp_path / "other.yaml")
    with pytest.raises(Rejected) as caught:
        load_manifests(config, {})
    assert str(caught.value) == (
        "manifests/a.yaml:1:1: manifests/a.yaml is a symlink to a place "
        "outside the project; copy the file into the project"
    )


def test_the_digest_follows_names_and_bytes_of_manifests_and_included_files(tmp_path: Path) -> None:
    files = {
        "manifests/a.yaml": "kind: IPPolicy\nname: a\nspec: {description: {from_file: manifests/text}}\n",
        "manifests/text": "one",
    }
    first = load_manifests(write_project(tmp_path, files), {}).manifest.digest
    assert load_manifests(write_project(tmp_path, files), {}).manifest.digest == first
    assert load_manifests(write_project(tmp_path, files | {"manifests/text": "two"}), {}).manifest.digest != first


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=5), max_size=4))
def test_the_digest_does_not_depend_on_the_order(texts: dict[str, bytes]) -> None:
    assert digest_of(texts) == digest_of(dict(reversed(texts.items())))


TWO = """kind: IPPolicy
name: a
---
---
kind: IPPolicyRule
name: b
spec:
  ip_policy_id: {ref: IPPolicy/a}
  cidr: 10.0.0.0/8
  action: allow
"""
B = Address("IPPolicyRule", "b")


def test_positions_of_a_file_and_of_its_text_are_the_same(tmp_path: Path) -> None:
    of_file = load_manifests(write_project(tmp_path, {"manifests/a.yaml": TWO}), {}).manifest.declarations
    of_text = load_texts({"manifests/a.yaml": TWO.encode()}, "prod", {}).manifest.declarations
    for address, declaration in of_text.items():
        assert dict(of_file[address].positions) == dict(declaration.positions)
        assert of_file[address].position == declaration.position
    assert of_file[B].at("cidr") == Position("manifests/a.yaml", 9, 9)


@pytest.mark.parametrize("text", ["\n" + TWO, "a: [", "", None], ids=["moved", "broken", "empty", "gone"])
def test_positions_are_those_of_the_file_as_it_was_read(tmp_path: Path, text: str | None) -> None:
    declaration = load_manifests(write_project(tmp_path, {"manifests/a.yaml": TWO}), {}).manifest.declarations[B]
    file = tmp_path / "manifests/a.yaml"
    file.unlink() if text is None else file.write_text(text)
    assert declaration.position == Position("manifests/a.yaml", 5, 1)
    assert declaration.at("cidr") == Position("manifests/a.yaml", 9, 9)


# --- loading ----------------------------------------------------------------------------------------------------------


def test_an_unknown_target_is_an_error_only_if_every_document_could_be_read() -> None:
    reference = "kind: IPRestriction\nname: r\nspec: {type: agent, ip_policy_ids: [{ref: IPPolicy/a}]}\n"
    unknown = "refers to IPPolicy/a, which is not declared"
    for other, is_reported in (
        ("kind: IPPolicy\nname: b\n", True),
        ("kind: IPPolicy\nname: b\nspec: {description: 1}\n", True),
        ("kind: IPPolicy\nname: a b\n", False),
        ("- a\n", False),
        ("kind: IPPolicy\nname: '${{ each.key }}'\nfor_each: 3\n", False),
        ("kind: [\n", False),
    ):
        try:
            load(f"{reference}---\n{other}")
            lines = []
        except Rejected as rejected:
            lines = [str(problem) for problem in rejected.problems]
        assert any(unknown in line for line in lines) == is_reported, other


def test_a_nested_unknown_key_is_not_reported_as_one_beside_the_spec() -> None:
    assert problem_lines("kind: TLSEdge\nname: a\nspec: {backend: {backend_id: bkdfo_1, name: x}}\n") == [
        "a.yaml:3:39: TLSEdge/a.backend.name: unknown field; use enabled or backend_id"
    ]


def test_a_patch_of_a_resource_in_an_unreadable_file_is_no_error(project: ProjectFolder) -> None:
    project.write("environments/prod.yaml", "IPPolicy/zzz: {}\n")
    assert [line for line in project.problem_lines("prod") if "not declared in any manifest" in line]
    project.write("manifests/b.yaml", "kind: [\n")
    assert [line for line in project.problem_lines("prod") if "not declared in any manifest" in line] == []


def test_problems_are_sorted_by_their_position() -> None:
    text = "---\n".join(f"kind: IPPolicy\nname: n{number}\nspec: {{b: 1, a: 1}}\n" for number in range(12))
    places = [tuple(map(int, line.split(":")[1:3])) for line in problem_lines(text)]
    assert places == sorted(places)
    assert len(places) == 24


def test_defaults_change_the_digest(project: ProjectFolder) -> None:
    digests = set()
    for value in ("a", "b"):
        project.write("reconciler.yaml", f"stack: s\ndefaults: {{IPPolicy: {{spec: {{metadata: {value}}}}}}}\n")
        digests.add(project.load().manifest.digest)
    project.write("reconciler.yaml", "stack: s\n")
    digests.add(project.load().manifest.digest)
    assert len(digests) == 3
