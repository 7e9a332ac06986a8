"""Checks between declarations: exposed secrets, shared targets, duplicate objects, moves and retired kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.dialect import DIALECTS
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem, Rejected
from reconciler.model.value import Secret
from reconciler.project.manifests.checks.by_kind import group_by_kind
from reconciler.project.manifests.checks.deliveries import find_deliveries_to_runner, find_shared_targets
from reconciler.project.manifests.checks.metadata import check_metadata
from reconciler.project.manifests.checks.retired_kinds import find_retired_kinds
from reconciler.project.manifests.load import load_manifests_with
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import Setting
from tests.project.texts import deliver_each, load

HIDDEN = "kind: Secret\nname: s\nspec: {vault_id: vault_x, name: s, value: {from_env: HIDDEN}}\n---\n"
SHOWN = "kind: IPPolicy\nname: a\nspec: {description: '%s'}\n"
POLICY = SHOWN % "${{ var.x }}"


def find_exposed(
    text: str, environ: Mapping[str, str], x: str = "", key: str | None = None, root: Path = Path()
) -> list[str]:
    """The subjects and texts of the problems about exposed secrets; `x`: the value of the variable `x`."""
    api_key = None if key is None else Secret(key, "env:KEY")
    config = Config(root, "prod", api_key=api_key, settings={"x": Setting(x)})
    try:
        load_manifests_with(config, environ, None, {"a.yaml": text.encode()}, {})
    except Rejected as rejected:
        found = [problem for problem in rejected.problems if problem.code == "secret-shown"]
        return [f"{problem.position}: {problem.subject}: {problem.text}" for problem in found]
    return []


TEXT = "is used as a secret, but plans and the platform show this field"


@pytest.mark.parametrize(
    ("secret", "value", "is_exposed"),
    [
        ("12345678", "12345678", True),
        ("1234567", "1234567", False),  # too short: equal by chance
        (" 12345678\n", "12345678", True),
        ("12345678", " 12345678 ", True),
        ("12345678", "x12345678", False),
        ("0123456789abcdef", "token=0123456789abcdef;", True),
        ("0123456789abcde", "token=0123456789abcde;", False),
        ("0123456789abcdef", "0123456789", False),  # part of a secret
    ],
)
def test_a_value_that_is_a_secret_or_contains_a_long_one_is_not_shown(
    secret: str, value: str, is_exposed: bool
) -> None:
    expected = [f"a.yaml:7:21: IPPolicy/a.description: the variable x {TEXT}"] if is_exposed else []
    assert find_exposed(HIDDEN + POLICY, {"HIDDEN": secret}, value) == expected


@pytest.mark.parametrize(
    ("name", "is_own"),
    [
        ("RECONCILER_API_KEY", True),
        ("RECONCILER_PLAN_KEY", True),
        ("GITHUB_TOKEN", True),
        ("VAULT_TOKEN", True),
        ("RECONCILER_STORE", False),
        ("OTHER_KEY", False),
        ("CI_GITHUB_TOKEN", False),
    ],
)
def test_keys_of_this_program_and_tokens_of_secret_stores_are_not_shown(name: str, is_own: bool) -> None:
    assert bool(find_exposed(POLICY, {name: "a-long-key"}, "a-long-key")) == is_own


def test_the_api_key_is_not_shown() -> None:
    assert find_exposed(POLICY, {}, "a-long-key", key="a-long-key\n")
    assert not find_exposed(POLICY, {}, "another-key", key="a-long-key")


def test_a_short_value_is_not_shown_if_its_source_is_that_of_a_secret(tmp_path: Path) -> None:
    text = SHOWN.replace("'%s'", "{from_env: HIDDEN}")
    assert find_exposed(HIDDEN + text, {"HIDDEN": "no"}) == [
        f"a.yaml:7:21: IPPolicy/a.description: the environment variable HIDDEN {TEXT}"
    ]
    (tmp_path / "token").write_text("no", encoding="utf-8")
    file = SHOWN.replace("'%s'", "{from_file: ./token}") + "---\n"
    assert find_exposed(file, {}, root=tmp_path) == []
    assert find_exposed(file + HIDDEN.replace("from_env: HIDDEN", "from_file: token"), {}, root=tmp_path) == [
        f"a.yaml:3:21: IPPolicy/a.description: the file token {TEXT}"
    ]


def test_a_field_with_several_exposed_values_is_reported_once() -> None:
    text = HIDDEN + SHOWN % "${{ var.x }} and ${{ var.x }}" + SHOWN.replace("name: a", "name: b") % "${{ var.x }}"
    text = text.replace("kind: IPPolicy\nname: b", "---\nkind: IPPolicy\nname: b")
    assert find_exposed(text, {"HIDDEN": "12345678"}, "12345678") == [
        f"a.yaml:7:21: IPPolicy/a.description: the variable x {TEXT}",
        f"a.yaml:11:21: IPPolicy/b.description: the variable x {TEXT}",
    ]


# --- targets of deliveries --------------------------------------------------------------------------------------------


def load_deliveries(*deliveries: str) -> list[Declaration]:
    return list(load(deliver_each(*deliveries)).manifest.declarations.values())


def find_shared(by_environment: Mapping[str | None, list[Declaration]]) -> list[tuple[Problem, list[str | None]]]:
    return [(problem, [*names]) for problem, names in find_shared_targets(by_environment, "/project/{}".format)]


@pytest.mark.parametrize(
    ("delivery", "other", "target", "patch"),
    [
        ("to_file: secrets/a", "to_file: secrets/b", "secrets/a", "{to_file: secrets/NAME/a}"),
        (
            "to_command: {run: [put, 'a b']}",
            "to_command: {run: [put, a, b]}",
            "the command put 'a b'",
            "{to_command: {run: [COMMAND, NAME]}}",
        ),
        (
            "to_dotenv: {file: .env, name: A}",
            "to_dotenv: {file: .env, name: B}",
            "the entry A of .env",
            "{to_dotenv: {file: secrets/NAME/.env}}",
        ),
        (
            "to_kubernetes_secret: {file: a.yml, name: n, namespace: s}",
            "to_kubernetes_secret: {file: b.yml, name: n}",
            "a.yml",
            "{to_kubernetes_secret: {file: secrets/NAME/secret.yaml, namespace: NAME}}",
        ),
        (
            "to_github_secret: {repository: acme/web, name: A}",
            "to_github_secret: {repository: acme/web, name: A, environment: prod}",
            "the secret A of the GitHub repository acme/web",
            "{to_github_secret: {environment: NAME}}",
        ),
        (
            "to_vault: {path: agents/a}",
            "to_vault: {path: agents/a, key: other}",
            "the key token of secret/agents/a in Vault",
            "{to_vault: {path: NAME/agents/a}}",
        ),
    ],
)
def test_a_target_that_environments_share_is_a_warning_with_a_patch(
    delivery: str, other: str, target: str, patch: str
) -> None:
    problems = find_shared(
        {None: load_deliveries(delivery), "prod": load_deliveries(delivery), "test": load_deliveries(other)}
    )
    (problem, names), *more = problems
    assert (names, more if "kubernetes" not in delivery else []) == ([None, "prod"], [])
    where = f"{target} in several environments (the project without an environment, prod)"
    if "kubernetes" in delivery:
        where = f"the key token of the Kubernetes Secret s/n in several environments ({where.partition('(')[2]}"
    assert str(problem) == (
        f"a.yaml:3:18: warning: TunnelCredential/a.deliver.token: delivered to {where}; the later apply would "
        "overwrite the other's secret: set another target in each environments/NAME.yaml, as in "
        f"`TunnelCredential/a: {{deliver: {{token: {patch}}}}}`"
    )
    assert not problem.is_error


def test_a_whole_file_is_shared_with_the_entries_of_another_environment() -> None:
    entry, whole, other = "to_dotenv: {file: a.env, name: A}", "to_file: A.env", "to_file: b.env"
    assert [names for _, names in find_shared({"x": load_deliveries(entry), "y": load_deliveries(whole)})] == [
        ["x", "y"]
    ]
    assert find_shared({"x": load_deliveries(entry), "y": load_deliveries(other)}) == []
    assert find_shared({"x": load_deliveries(entry), "y": load_deliveries(entry.replace("name: A", "name: B"))}) == []


def test_a_kubernetes_secret_that_shares_file_and_key_is_one_problem() -> None:
    both = load_deliveries("to_kubernetes_secret: {file: a.yml, name: n}")
    assert [names for _, names in find_shared({"x": both, "y": both})] == [["x", "y"]]


def test_a_github_secret_is_shared_in_any_spelling_of_its_name() -> None:
    one = load_deliveries("to_github_secret: {repository: Acme/web, name: a, environment: Prod}")
    other = load_deliveries("to_github_secret: {repository: acme/Web, name: A, environment: prod}")
    assert [names for _, names in find_shared({"x": one, "y": other})] == [["x", "y"]]


def test_deliveries_within_one_environment_are_not_shared_between_environments() -> None:
    command = "to_command: {run: [put, %s]}"
    assert find_shared({"x": load_deliveries(command % "a", command % "b")}) == []


def test_deliveries_to_files_of_a_ci_runner_are_warnings() -> None:
    found = list(
        find_deliveries_to_runner(
            load_deliveries(
                "to_file: secrets/a",
                "to_command: {run: [put]}",
                "to_dotenv: {file: .env, name: A}",
                "to_vault: {path: a}",
                "to_kubernetes_secret: {file: a.yml, name: n}",
            )
        )
    )
    assert [(problem.subject[17], problem.severity) for problem in found] == [
        ("a", "warning"),
        ("c", "warning"),
        ("e", "warning"),
    ]
    assert found[1].text == ("delivered to the entry A of .env on a CI runner, which deletes its files after the job")


def test_a_created_one_time_secret_without_a_sink_is_a_warning() -> None:
    credential = "kind: TunnelCredential\nname: %s\n%s\n---\n"
    text = "".join(
        credential % (name, more) for name, more in {"a": "", "b": "id: cr_1", "c": "ensure: absent"}.items()
    )
    assert [
        str(warning) for warning in load(text + deliver_each("to_file: t").replace("name: a", "name: d")).warnings
    ] == [
        "a.yaml:1:1: warning: TunnelCredential/a: its token has no sink, so that the object cannot be created: it is "
        "shown only once; add `deliver: {token: {to_file: secrets/a}}`"
    ]


# --- one object, declared twice ---------------------------------------------------------------------------------------


def documents(*texts: str) -> str:
    return "---\n".join(f"{text}\n" for text in texts)


RULE = "{kind: IPPolicyRule, name: %s, spec: {ip_policy_id: %s, cidr: %s, action: allow}}"


@pytest.mark.parametrize(
    "texts",
    [
        ["{kind: IPPolicy, name: a, id: ipp_1}", "{kind: IPPolicy, name: b, id: ipp_1, ensure: absent}"],
        ["{kind: IPPolicy, name: a, id: ipp_1, ensure: forgotten}", "{kind: IPPolicy, name: b, id: ipp_1}"],
        ["{kind: BotUser, name: a, spec: {name: n}}", "{kind: BotUser, name: b, spec: {name: other}}"],
        ["{kind: BotUser, name: a, spec: {name: n}}", "{kind: BotUser, name: b, spec: {name: n}, ensure: absent}"],
        [RULE % ("a", "ipp_1", "1.1.1.1/32"), RULE % ("b", "ipp_2", "1.1.1.1/32")],
        [
            "{kind: IPPolicy, name: p}",
            "{kind: IPPolicy, name: q}",
            RULE % ("a", "{ref: IPPolicy/p}", "1.1.1.1/32"),
            RULE % ("b", "{ref: IPPolicy/q}", "1.1.1.1/32"),
        ],
    ],
)
def test_different_objects_and_absent_ones_are_no_duplicates(texts: list[str]) -> None:
    assert len(load(documents(*texts)).manifest.declarations) == len(texts)


def test_endpoints_share_a_url_only_if_both_pool() -> None:
    endpoint = "{kind: CloudEndpoint, name: %s, spec: {url: 'https://a.b', traffic_policy: {on_http_request: []}%s}}"
    pool = ", pooling_enabled: true"
    assert len(load(documents(endpoint % ("a", pool), endpoint % ("b", pool))).manifest.declarations) == 2


NAMES = "abcd"


@given(st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=8))
def test_removing_the_reported_references_leaves_no_circular_reference(
    edges: set[tuple[str, str]],
) -> None:
    def is_circular(left: set[tuple[str, str]]) -> bool:
        names = {*NAMES}
        while free := {name for name in names if not any(one == name and other in names for one, other in left)}:
            names -= free
        return bool(names)

    texts = []
    for name in NAMES:
        references = ", ".join(f"{{ref: FailoverBackend/{other}}}" for one, other in sorted(edges) if one == name)
        texts.append(f"{{kind: FailoverBackend, name: {name}, spec: {{backends: [{references}]}}}}")
    try:
        load(documents(*texts))
        cycles = []
    except Rejected as rejected:
        assert {problem.code for problem in rejected.problems} == {"circular-reference"}  # noqa: PT017
        cycles = [[address[-1] for address in problem.values["addresses"]] for problem in rejected.problems]
    assert bool(cycles) == is_circular(edges)
    for cycle in cycles:
        assert cycle[0] == min(cycle)
        assert {*zip(cycle, [*cycle[1:], cycle[0]], strict=True)} <= edges
    assert not is_circular(edges - {(cycle[0], cycle[1 % len(cycle)]) for cycle in cycles})


# --- retired kinds ----------------------------------------------------------------------------------------------------


def test_a_retired_kind_is_one_warning_at_its_first_declaration() -> None:
    edge = "{kind: TLSEdge, name: %s}"
    texts = [edge % "gone" + "", edge % "a", edge % "b", "{kind: TCPEdge, name: c}", "{kind: IPPolicy, name: d}"]
    texts[0] = "{kind: TLSEdge, name: gone, ensure: absent}"
    found = list(find_retired_kinds(load(documents(*texts)).manifest.declarations.values(), DIALECTS["ngrok"]))
    assert [str(problem) for problem in found] == [
        "a.yaml:3:1: warning: TLSEdge/a: ngrok no longer creates objects of the kind TLSEdge (ERR_NGROK_7008); 2 are "
        "declared; declare a CloudEndpoint with a traffic policy instead",
        "a.yaml:7:1: warning: TCPEdge/c: ngrok no longer creates objects of the kind TCPEdge (ERR_NGROK_7008); "
        "declare a CloudEndpoint with a traffic policy instead",
    ]
    declarations = load(documents(*texts)).manifest.declarations.values()
    assert list(find_retired_kinds(declarations, DIALECTS["specification"])) == []


# --- metadata ---------------------------------------------------------------------------------------------------------


def metadata(text: str) -> list[str]:
    """The problems that a policy with this metadata has."""
    declarations = load('{kind: IPPolicy, name: a, spec: {metadata: ""}}').manifest.declarations
    (declaration,) = declarations.values()
    declaration = replace(declaration, spec={"metadata": text})
    return [problem.text for problem in check_metadata(group_by_kind([declaration]), "prod")]


def test_metadata_may_fill_the_room_beside_the_owner_record() -> None:
    (text,) = metadata("x" * 4000)
    room = int(text.partition("; ")[2].partition(" ")[0])
    assert 3900 < room < 4000
    assert metadata("x" * room) == []
    assert metadata("x" * (room + 1)) == [f"has {room + 1} bytes; {room} are available beside the owner record"]
    assert metadata("é" * (room // 2 + 1))
    assert metadata("x" * 4096)
    assert metadata("x" * 4097) == []  # the field itself is too long


@pytest.mark.parametrize(
    ("text", "is_reserved"),
    [
        ('{"reconciler": 1}', True),
        ('{"a": {"reconciler": 1}}', False),
        ('["reconciler"]', False),
        ("managed by the reconciler", False),
        ("note\n#reconciler {}", True),
        ("note #reconciler {}", False),
        ("#reconciler", False),
    ],
)
def test_only_the_place_of_the_owner_record_is_reserved(text: str, is_reserved: bool) -> None:
    assert bool(metadata(text)) == is_reserved
