"""Settings of a project: own files, the digest, variables, environments and defaults. Invalid ones: `mistakes`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.known_drift import KnownDrift
from reconciler.model.problem import Position, Problem, Rejected
from reconciler.model.value import PENDING, Secret, secrets_in
from reconciler.project.manifests.load import load_manifests, load_manifests_with, own_places
from reconciler.project.settings import environments, variables
from reconciler.project.settings.config import Config, load_config
from reconciler.project.settings.variables import Setting
from tests.project.texts import POLICY, ProjectFolder


def problem_lines(project: ProjectFolder, settings: str, environment: str | None = None) -> list[str]:
    project.write("reconciler.yaml", settings)
    with pytest.raises(Rejected) as caught:
        project.config(environment)
    return [str(problem).removeprefix("reconciler.yaml:") for problem in caught.value.problems]


# --- the project file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("store: {from_env: NONE}", "2:8: store: the environment variable NONE is not set; export NONE "),
        ("agent: {base_url: {from_env: NONE}}", "2:19: agent.base_url: the environment variable NONE is not set; "),
    ],
)
def test_a_setting_from_an_unset_environment_variable_is_reported(project: ProjectFolder, text: str, line: str) -> None:
    (problem,) = problem_lines(project, f"stack: a\n{text}")
    assert problem.startswith(line)


def test_settings_at_their_bounds_are_accepted(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        f"stack: {'a' * 63}\nlimits: {{requests_per_minute: 2, concurrency: 256, settle_seconds: 600}}\n"
        "guards: {max_delete_percent: 0, max_update_percent: 100}\n"
        "drift:\n  ignore:\n  - {match: '*/*.x', until: 2030-12-31, reason: y}\n",
    )
    read = project.config()
    assert (read.limits.requests_per_minute, read.limits.concurrency, read.limits.settle_seconds) == (2, 256, 600)
    assert read.known_drift == (KnownDrift("*/*.x", "2030-12-31", "y", Position("reconciler.yaml", 6, 5)),)


def test_defaults_of_the_settings_are_those_of_the_documentation(project: ProjectFolder) -> None:
    read = project.config()
    assert (read.limits.requests_per_minute, read.limits.concurrency, read.limits.settle_seconds) == (None, 32, 10.0)
    assert (read.guards.max_delete_percent, read.guards.max_update_percent) == (30, 30)
    assert (read.guards.require_approval, read.policies, read.store) == ([], ("policies",), None)
    assert (read.profile, read.account, read.agent_url) == ("specification", None, "http://127.0.0.1:4040")
    assert (read.snapshots.public_key, read.known_drift, read.warnings, read.unmet != ()) == (None, (), (), True)


def test_an_invalid_override_is_reported_before_problems_of_the_file(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: a b\nlimits: {concurrency: 0}\nstore: {from_env: NONE}\n")
    with pytest.raises(Rejected) as caught:
        project.config(environ={"RECONCILER_AGENT_URL": "nowhere"})
    assert [problem.subject for problem in caught.value.problems] == [
        "RECONCILER_AGENT_URL",
        "stack",
        "limits.concurrency",
        "store",
    ]


def test_an_environment_may_be_empty_and_a_project_file_may_not(project: ProjectFolder) -> None:
    assert problem_lines(project, "# nothing\n") == ["1:1: expected a map, found nothing; begin with version: 1"]
    project.write("reconciler.yaml", "stack: shop\n")
    for nothing in ("# nothing\n", "---\n", "null\n"):
        project.write("environments/x.yaml", nothing)
        assert project.config("x").stack == "shop"
    project.write("environments/x.yaml", "- a\n")
    with pytest.raises(Rejected, match=r"environments/x\.yaml:1:1: expected a map, found a list; write settings, "):
        project.config("x")
    project.write("environments/x.yaml", "a: 1\n---\nb: 1\n")
    with pytest.raises(Rejected, match=r"environments/x\.yaml:1:1: expected one document, found 2; remove what"):
        project.config("x")


def test_settings_from_a_missing_source_are_unset_with_a_placeholder(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        "stack: shop\nstore: {from_env: NONE}\nplatform: {account: {from_env: NONE}, base_url: 'https://a.example'}\n"
        "variables: {x: {from_env: NONE}, y: 1}\nlimits: {concurrency: {from_env: NONE}}\n",
    )
    asked = []

    def absent(source: str, is_secret: bool) -> Any:
        asked.append((source, is_secret))
        return PENDING

    read = load_config(project.root, {}, absent=absent)
    assert (read.store, read.account, read.base_url, read.limits.concurrency) == (None, None, "https://a.example", 32)
    value: object = read.settings["x"].value
    assert value == PENDING
    assert sorted(set(asked)) == [("env:NONE", False)]


# --- the key and the connection ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "codes"),
    [
        ("{api_key: k, base_url: 'https://a.example'}", ["literal-secret"]),
        ("{api_key: k, base_url: 'http://localhost:1'}", []),
        ("{api_key: k, base_url: 'http://127.0.0.1:1'}", []),
        ("{api_key: k}", ["literal-secret"]),
        ("{api_key: k, profile: ngrok}", ["literal-secret"]),
        ("{api_key: {from_env: KEY}, base_url: 'https://a.example'}", []),
    ],
)
def test_a_literal_key_is_a_warning_unless_the_platform_is_local(
    project: ProjectFolder, platform: str, codes: list[str]
) -> None:
    project.write("reconciler.yaml", f"stack: shop\nplatform: {platform}\n")
    read = project.config(environ={"KEY": "k"})
    assert [warning.code for warning in read.warnings] == codes
    assert bool(read.unmet) == (read.base_url is None)
    assert project.config(environ={"RECONCILER_API_KEY": "other"}).api_key == Secret("other", "env:RECONCILER_API_KEY")


@pytest.mark.parametrize(
    ("store", "codes"),
    [
        ("postgresql://u:p@h/d", ["literal-secret"]),
        ("postgresql://u@h/d", []),
        ("postgresql://u:@h/d", []),
        ("state/u:p@h", []),
        ("{from_env: STORE}", []),
    ],
)
def test_a_literal_password_of_the_store_is_a_warning(project: ProjectFolder, store: str, codes: list[str]) -> None:
    project.write("reconciler.yaml", f"stack: shop\nstore: {store}\n")
    warnings = project.config(environ={"STORE": "state/x.db"}).warnings
    assert [(warning.code, warning.subject, str(warning.position)) for warning in warnings] == [
        (code, "store", "reconciler.yaml:2:8") for code in codes
    ]


def test_an_override_replaces_a_setting_that_could_not_be_read(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\nplatform: {base_url: {from_env: URL}, api_key: {from_env: KEY}}\n")
    read = project.config()
    assert [problem.subject for problem in read.unmet] == ["platform.base_url", "platform.api_key"]
    assert read.warnings == ()
    read = project.config(environ={"RECONCILER_API_KEY": "k"})
    assert [problem.subject for problem in read.unmet] == ["platform.base_url"]
    with pytest.raises(Rejected):
        read.connection()
    read = project.config(environ={"RECONCILER_API_KEY": "k", "RECONCILER_BASE_URL": "https://a.example/"})
    assert (read.unmet, read.connection()) == ((), ("https://a.example", Secret("k", "env:RECONCILER_API_KEY")))


@pytest.mark.parametrize("given", [{"base_url": "https://a.example"}, {"api_key": Secret("k", "x")}])
def test_no_connection_without_both_url_and_key(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(Rejected):
        Config(tmp_path, "s", **given).connection()


# --- own files --------------------------------------------------------------------------------------------------------


def own(project: ProjectFolder, environment: str | None = None, environ: Mapping[str, str] | None = None) -> Any:
    places = own_places(project.config(environment, environ))
    root = f"{project.root.resolve()}/"
    return {path.removeprefix(root): what for path, what in places.items()}


BASE = {
    "reconciler.yaml": "settings",
    "approvals.yaml": "approvals",
    "environments": "environments",
    "policies": "policies",
    "manifests": "manifests",
    "manifests/a.yaml": "manifests",
    "components": "components",
    **dict.fromkeys(("tests/access", "tests/access.yaml", "tests/access.yml"), "access tests"),
}
FIXED = (
    "reconciler.yaml",
    "approvals.yaml",
    "components",
    "environments",
    "tests/access",
    "tests/access.yaml",
    "tests/access.yml",
)


def store(path: str) -> dict[str, str]:
    return dict.fromkeys((path, f"{path}-wal", f"{path}-shm"), "store")


def test_the_own_files_of_a_project_are_all_reserved(project: ProjectFolder) -> None:
    assert own(project) == BASE | store("state/reconciler.db")
    settings = "stack: s\nmanifests: [m.yaml, more]\npolicies: [rules]\nstore: data/own.db\n"
    project.write("reconciler.yaml", settings)
    project.write("more/x.yaml", "")
    paths = {"m.yaml": "manifests", "more": "manifests", "more/x.yaml": "manifests", "rules": "policies"}
    fixed = {path: BASE[path] for path in FIXED}
    assert own(project) == fixed | paths | store("data/own.db")
    assert own(project, environ={"RECONCILER_STORE": "other.db"}) == fixed | paths | store("other.db")
    assert own(project, environ={"RECONCILER_STORE": "postgresql://h/d"}) == fixed | paths
    assert (
        own_places(replace(project.config(), store="a\0b")).keys()
        == own_places(replace(project.config(), store="postgresql://h/d")).keys()
    )


def test_files_that_settings_include_are_own_files_except_that_of_the_key(project: ProjectFolder) -> None:
    for name in ("key", "note", "region"):
        project.write(name, f"{name}-text")
    project.write(
        "reconciler.yaml",
        "stack: s\nplatform: {api_key: {from_file: key}}\nvariables: {n: {from_file: note}, r: {type: string}}\n",
    )
    project.write("environments/prod.yaml", "variables: {r: {from_file: region}}\n")
    assert sorted(project.config().included_files) == ["note"]
    assert sorted(project.config("prod").included_files) == ["note", "region"]
    found = own(project, "prod")
    assert found["environments/prod.yaml"] == "environments"
    assert {path: found.get(path) for path in ("key", "note", "region")} == {
        "key": None,
        "note": "settings, which read it with from_file",
        "region": "settings, which read it with from_file",
    }


# --- variables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("x", None, "x"),
        ("3", None, 3),
        ("[1]", "list", [1]),
        ("{type: integer, default: 3}", "integer", 3),
        ("{type: number, default: 3}", "number", 3),
        ("{type: boolean, default: false}", "boolean", False),
        ("{type: string, default: ''}", "string", ""),
        ("{type: map, default: {a: 1}}", "map", {"a": 1}),
        ("{default: {a: 1}}", None, {"a": 1}),
        ("{type: string}", "string", None),
        ("{description: what}", None, None),
        ("{}", None, None),
    ],
)
def test_a_variable_is_a_value_or_a_declaration(
    project: ProjectFolder, text: str, kind: str | None, value: object
) -> None:
    project.write("reconciler.yaml", f"stack: s\nvariables: {{v: {text}}}\n")
    setting = project.config().settings["v"]
    assert (setting.type, setting.value, setting.source, setting.origin) == (kind, value, "default", "")
    assert project.config().variables == ({} if value is None else {"v": value})


def test_a_variable_has_its_source_and_position(project: ProjectFolder) -> None:
    project.write("note", "n")
    project.write(
        "reconciler.yaml",
        "stack: s\nvariables:\n  a: x\n  b: {default: y}\n  c: {type: string}\n  d: {from_file: note}\n"
        "  e: {from_env: E}\n",
    )
    project.write("environments/prod.yaml", "variables: {a: z, c: {from_env: C}}\n")
    read = project.config("prod", {"E": "e", "C": "c"})
    found = {
        name: (setting.value, setting.source, setting.origin, str(setting.spot and setting.spot.position))
        for name, setting in read.settings.items()
    }
    assert found["a"] == ("z", "environment prod", "", "environments/prod.yaml:1:16")
    assert found["b"] == ("y", "default", "", "reconciler.yaml:4:16")
    assert found["c"] == ("c", "environment prod", "env:C", "environments/prod.yaml:1:22")
    assert found["d"] == ("n", "default", "file:note", "reconciler.yaml:6:6")
    assert found["e"] == ("e", "default", "env:E", "reconciler.yaml:7:6")
    assert variables.sources(read.settings) == {"c": "env:C", "d": "file:note", "e": "env:E"}


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"a": {"from_env": "E"}}, {"a": "env:E"}),
        ({"a": {"from_file": "f"}, "b": 1}, {"a": "file:f"}),
        ({"a": {"from_env": 1}}, {}),
        ({"a": {"ref": "x"}}, {}),
        ({"a": {"from_env": "E", "from_file": "f"}}, {}),
        ([1], {}),
        (None, {}),
    ],
)
def test_only_values_from_outside_have_an_origin(written: Any, found: dict[str, str]) -> None:
    assert variables.origins(written) == found


def test_a_variable_of_an_environment_from_an_unset_environment_variable_is_reported(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\nvariables: {size: {type: integer}, text: {type: string}}\n")
    project.write("environments/prod.yaml", "variables: {text: {from_env: NONE}}\n")
    (problem,) = project.problem_lines("prod")
    assert problem.startswith(
        "environments/prod.yaml:1:19: variables.text: the environment variable NONE is not set; export NONE"
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("list", "a", "wrong"),
        ("list", "[a", "invalid"),
        ("list", "[a]\n---\n[b]", "invalid"),
        ("list", "", "invalid"),
        ("map", "[a]", "wrong"),
        ("map", "{a: {b: 1}}", {"a": {"b": 1}}),
        ("integer", "0x10", 16),
        ("integer", "", "wrong"),
        ("integer", "1.5", "wrong"),
        ("integer", "true", "wrong"),
        ("number", "3", 3),
        ("number", ".inf", "wrong"),
        ("boolean", "no", "wrong"),
        ("boolean", "false", False),
        ("string", "true", "true"),
        ("string", "", ""),
    ],
)
def test_text_of_the_command_line_is_converted_to_the_type(kind: str, text: str, value: Any) -> None:
    converted, mismatch = variables.convert(text, kind)
    if value in ("wrong", "invalid"):
        assert mismatch is not None
        assert mismatch[0].endswith("found invalid YAML") == (value == "invalid")
    else:
        assert isinstance(converted, type(value))  # a number that remembers its spelling
        assert (type(value)(converted), mismatch) == (value, None)


@pytest.mark.parametrize(("kind", "value"), [("integer", 3), ("boolean", True), ("list", ["a"])])
def test_a_value_set_by_a_program_is_not_converted(kind: str, value: Any) -> None:
    assert variables.convert(value, kind) == (value, None)


def test_values_of_the_command_line_are_settled_with_their_problems() -> None:
    settings = {"n": Setting(1, "integer", origin="env:N"), "t": Setting("a"), "none": Setting()}
    problems: list[Problem] = []
    settled = variables.settle_variables(settings, {"n": "x", "t": "b", "m": "y"}, problems)
    assert [(str(problem), problem.code) for problem in problems] == [
        ("--var n: expected a whole number, found text; write --var 'n=3'", "wrong-type"),
        ("--var m: unknown variable; define it under variables: in reconciler.yaml", "unknown-variable"),
        (
            "variables.none: has no value; set it with --var none=VALUE, in environments/NAME.yaml or with a default",
            "variable-without-value",
        ),
    ]
    assert settled["t"] == Setting("b", None, "--var", None, "")
    assert (settled["n"].source, settled["n"].origin) == ("--var", "")
    assert variables.sources(settled) == {"n": "--var", "t": "--var"}
    assert settings["t"].value == "a"


def test_the_digest_covers_values_set_by_flags_and_the_stack(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\nvariables: {x: one}\n")
    first, plain = project.load(x="two").manifest.digest, project.load().manifest.digest
    assert first != plain
    project.write("reconciler.yaml", "stack: t\nvariables: {x: one}\n")
    assert project.load().manifest.digest == plain
    assert project.load(x="two").manifest.digest != first


def test_names_of_the_command_line_are_checked_together() -> None:
    variables.check_names({"a": Setting(1)}, ["a"])
    with pytest.raises(Rejected) as caught:
        variables.check_names({"alpha": Setting(1)}, ["alpha", "alphb", "zzz"])
    assert [(str(problem), dict(problem.values)) for problem in caught.value.problems] == [
        ("--var alphb: unknown variable; did you mean alpha?", {"variable": "alphb", "suggestion": "alpha"}),
        ("--var zzz: unknown variable; define it under variables: in reconciler.yaml", {"variable": "zzz"}),
    ]


# --- environments -----------------------------------------------------------------------------------------------------


def test_environments_are_listed_by_name(project: ProjectFolder) -> None:
    assert environments.environment_names(project.root) == []
    for name in ("test.yaml", "prod.yaml", ".hidden.yaml", "note.txt", "old.yml"):
        project.write(f"environments/{name}", "")
    assert environments.environment_names(project.root) == ["prod", "test"]


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("a", True),
        ("9._-", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("-a", False),
        ("a/b", False),
        ("..", False),
    ],
)
def test_the_name_of_an_environment_is_a_file_name(tmp_path: Path, name: str, is_valid: bool) -> None:
    assert (environments.check_name(name) is None) == is_valid
    with pytest.raises(Rejected) as caught:
        environments.read_environment(tmp_path, name)
    assert ("is not a valid environment name" in str(caught.value)) != is_valid


def test_an_unknown_environment_is_reported_with_the_known_ones(project: ProjectFolder) -> None:
    def remedy() -> str:
        with pytest.raises(Rejected) as caught:
            project.config("zzz")
        return caught.value.problems[0].remedy

    assert remedy() == "create environments/zzz.yaml"
    for number in range(21):
        project.write(f"environments/e{number:02}.yaml", "")
    assert remedy() == f"known environments: {', '.join(f'e{number:02}' for number in range(20))} and 1 more"


@pytest.mark.parametrize("number", [0, 19, 20, 29])
def test_each_of_many_environments_is_known(project: ProjectFolder, number: int) -> None:
    for place in range(30):
        project.write(f"environments/region-{place:02}.yaml", "")
    with pytest.raises(Rejected, match=f"did you mean region-{number:02}?"):
        project.config(f"regoin-{number:02}")
    file = project.root / f"environments/region-{number:02}.yaml"
    file.unlink()
    file.symlink_to("/dev/null")
    with pytest.raises(Rejected) as unreadable:
        project.config(f"region-{number:02}")
    assert [problem.code for problem in unreadable.value.problems] == ["path-outside-project"]


def test_an_absent_resource_has_no_defaults(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml", "stack: s\ndefaults: {IPPolicy: {lifecycle: {protect: true}, spec: {metadata: m}}}\n"
    )
    states = {"a": "present", "b": "absent", "c": "forgotten"}
    project.write(
        "manifests/a.yaml",
        "---\n".join(f"kind: IPPolicy\nname: {name}\nensure: {ensure}\n" for name, ensure in states.items()),
    )
    project.write("environments/prod.yaml", "IPPolicy/b: {spec: {description: d}}\n")
    for environment in (None, "prod"):
        found = project.declarations(environment)
        assert [declaration.lifecycle.protect for declaration in found.values()] == [True, False, False]
        assert [declaration.spec.get("metadata") for declaration in found.values()] == ["m", None, None]


def test_expressions_in_defaults_are_resolved_in_each_manifest(project: ProjectFolder) -> None:
    project.write(
        "reconciler.yaml",
        "stack: s\nvariables: {v: one}\ndefaults:\n  IPPolicy: {spec: {metadata: '${{ var.v }}'}}\n"
        "  Secret: {spec: {vault_id: vault_1, name: n, value: {from_env: HIDDEN}}}\n",
    )
    project.write("manifests/a.yaml", f"{POLICY}---\nkind: Secret\nname: s\n")
    found = load_manifests(project.config(), {"HIDDEN": "canary"}, {"v": "two"}).manifest.declarations
    assert [dict(declaration.spec) for declaration in found.values()] == [
        {"description": "base", "metadata": "two"},
        {"vault_id": "vault_1", "name": "n", "value": Secret("canary", "env:HIDDEN")},
    ]
    assert [secret.reveal() for secret in secrets_in(list(found.values())[1].spec)] == ["canary"]


def test_an_invalid_variable_is_reported_before_problems_of_manifests(project: ProjectFolder) -> None:
    project.write("manifests/a.yaml", POLICY.replace("description", "descripton"))
    assert [line.partition(":")[0] for line in project.problem_lines(zzz="1")] == ["--var zzz", "manifests/a.yaml"]


def test_manifests_are_loaded_together_with_planned_ones(project: ProjectFolder) -> None:
    added = {"more/b.yaml": b"kind: IPPolicy\nname: b\nspec: {description: {from_file: note}}\n"}
    included = {"note": b"text\n"}
    project.write("reconciler.yaml", "stack: s\nmanifests: [manifests, more]\n")
    loaded = load_manifests_with(project.config(), {}, None, added, included)
    assert [
        (str(address), declaration.spec["description"]) for address, declaration in loaded.manifest.declarations.items()
    ] == [
        ("IPPolicy/office", "base"),
        ("IPPolicy/b", "text"),
    ]
    assert loaded.files == ("manifests/a.yaml", "more/b.yaml")
    project.write("reconciler.yaml", "stack: s\nmanifests: [manifests, none.yaml]\n")
    with pytest.raises(Rejected, match=r"there is no file none\.yaml"):
        load_manifests_with(project.config(), {}, None, added, included)


def test_listed_manifests_are_read_once(project: ProjectFolder) -> None:
    project.write("reconciler.yaml", "stack: s\nmanifests: [manifests/a.yaml, ./manifests]\n")
    assert load_manifests(project.config(), {}).files == ("manifests/a.yaml",)
