"""`validate_fleet` checks each project once for each set of variables, and the types of all values."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.fleet import validate as fleet_validate
from reconciler.fleet.validate import FleetValidation, ProjectValidation, _merge, check_variables, validate_fleet
from reconciler.model.fleet import FleetProject
from reconciler.model.problem import Position, Problem
from reconciler.operations.results import ValidationResult
from reconciler.operations.runtime import Runtime
from reconciler.operations.validate import make_placeholder
from reconciler.project.fleets.load import load_fleet
from reconciler.project.fleets.waves import assign_waves
from reconciler.project.settings.config import Config, load_config
from tests.harness.golden import compare_golden

FLEET = """\
fleet: shops
api_key: {from_env: 'KEY_${{ member.name }}'}
members: members.csv
projects: [{name: base, path: base}, {name: shop, path: shop, select: {tier: gold}}]
"""
CSV = """\
name,labels.tier,variables.domain,variables.size,variables.region
berlin,gold,b.example.com,3,
paris,gold,p.example.com,,eu
rome,silver,r.example.com,4,
"""
VARIABLES = "variables: {domain: {type: string}, size: {type: integer, default: 1}}\n"
DOMAIN = "kind: ReservedDomain\nname: shop\nspec: {domain: '${{ var.domain }}'}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def write_folder(folder: Path) -> Path:
    for name, settings, manifest in (
        ("base", "variables: {region: us}\n", "kind: BotUser\nname: b\nspec: {name: b}\n"),
        ("shop", VARIABLES, DOMAIN),
    ):
        (folder / name / "manifests").mkdir(parents=True)
        (folder / name / "reconciler.yaml").write_text(f"stack: {name}\n{settings}")
        (folder / name / "manifests/a.yaml").write_text(manifest)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "members.csv").write_text(CSV)
    return folder


def validate(folder: Path) -> FleetValidation:
    return validate_fleet(folder, runtime=Runtime(environ={"RECONCILER_ENV": "prod"}))


def problems(folder: Path) -> list[str]:
    return [f"{problem} [{problem.code}]" for problem in validate(folder).problems]


def test_a_valid_fleet(folder: Path) -> None:
    result = validate(folder)
    assert result.is_valid
    assert result.problems == ()
    assert [(one.project.name, one.example, one.members, one.result.resources) for one in result.projects] == [
        ("base", "berlin", 2, 1),
        ("base", "paris", 1, 1),
        ("shop", "berlin", 1, 1),
        ("shop", "paris", 1, 1),
    ]


def test_a_project_is_loaded_once_for_each_set_of_variables(folder: Path) -> None:
    rows = "".join(f"shop-{n},gold,s{n}.example.com,{n},\n" for n in range(2000))
    (folder / "members.csv").write_text(CSV + rows)
    assert [one.members for one in validate(folder).projects] == [2002, 1, 2001, 1]


def test_an_unknown_field_of_a_fleet_file_is_reported(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(f"{FLEET}wave: []\n")
    result = validate(folder)
    assert (result.fleet, result.is_valid) == (None, False)
    assert [str(problem) for problem in result.problems] == ["fleet.yaml:5:1: wave: unknown field; did you mean waves?"]


def test_problems_of_a_project_have_its_path(folder: Path) -> None:
    (folder / "shop/manifests/a.yaml").write_text(DOMAIN.replace("name: shop", "name: shop\nnmae: x"))
    assert problems(folder) == [
        "shop/manifests/a.yaml:3:1: ReservedDomain/shop.nmae: unknown field; did you mean name? [unknown-field]"
    ]
    (folder / "shop/reconciler.yaml").write_text("stack: [s]\n")
    assert problems(folder) == [
        'shop/reconciler.yaml:1:8: stack: expected text, found a list; write text, as in "value" [wrong-type]'
    ]


def test_a_value_of_the_wrong_type_is_reported_once_with_its_members(folder: Path) -> None:
    rows = "".join(f"shop-{n},gold,s{n}.example.com,many,\n" for n in range(50))
    (folder / "members.csv").write_text(CSV + rows)
    assert problems(folder) == [
        "members.csv:5:1: variables.size: expected a whole number, found text (for shop-0, shop-1, shop-2 and 47 "
        "others); write a whole number, as in 3 [wrong-type]"
    ]


def test_two_projects_of_one_stack_are_reported(folder: Path) -> None:
    settings_file = folder / "base/reconciler.yaml"
    settings_file.write_text(settings_file.read_text().replace("stack: base", "stack: shop"))
    assert problems(folder) == [
        "fleet.yaml: projects base and shop have the same stack 'shop', and berlin gets both; give each project a "
        "stack of its own in its reconciler.yaml [shared-stack]"
    ]


def test_projects_of_one_stack_without_a_common_member_are_valid(folder: Path) -> None:
    settings_file = folder / "base/reconciler.yaml"
    settings_file.write_text(settings_file.read_text().replace("stack: base", "stack: shop"))
    (folder / "fleet.yaml").write_text(FLEET.replace("path: base}", "path: base, select: {tier: silver}}"))
    assert not [problem for problem in problems(folder) if "shared-stack" in problem]


def test_a_variable_without_a_value_is_reported(folder: Path) -> None:
    (folder / "members.csv").write_text(CSV.replace("paris,gold,p.example.com", "paris,gold,"))
    assert problems(folder) == [
        "members.csv:3:1: variables.domain: the variable domain of the project shop has no value (for paris); set "
        "variables.domain of each member, or a default in the project [variable-without-value]"
    ]


def test_an_undeclared_variable_is_reported(folder: Path) -> None:
    (folder / "members.csv").write_text(CSV.replace("variables.region", "variables.regoin"))
    assert problems(folder) == [
        "members.csv:3:1: variables.regoin: unknown variable: no project of the fleet declares it (for paris); did you "
        "mean region? [unknown-variable]"
    ]


def test_only_variables_are_checked_before_a_run(folder: Path) -> None:
    assert check_variables(load_fleet(folder), folder) == ()
    (folder / "members.csv").write_text(CSV.replace("variables.region", "variables.regoin").replace("m,3", "m,three"))
    (folder / "shop/manifests/a.yaml").write_text("kind: [\n")
    found = check_variables(load_fleet(folder), folder, Runtime(environ={"RECONCILER_ENV": "prod"}))
    assert [(str(problem.position), problem.subject, problem.code) for problem in found] == [
        ("members.csv:3:1", "variables.regoin", "unknown-variable"),
        ("members.csv:2:1", "variables.size", "wrong-type"),
    ]


def test_a_warning_does_not_invalidate_the_fleet(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(f"{FLEET}waves: [{{name: a, select: {{tier: bronze}}}}]\n")
    result = validate(folder)
    assert result.is_valid
    assert [problem.code for problem in result.problems] == ["unmatched-label"]


def test_the_example_is_valid() -> None:
    example = Path(__file__).parents[2] / "examples/fleet"
    result = validate_fleet(example, runtime=Runtime(environ={}))
    assert result.problems == ()
    assert result.fleet is not None
    assert [(one.project.name, one.members, one.result.resources) for one in result.projects] == [
        ("network", 6, 2),
        ("shop", 5, 2),
        ("shop", 1, 2),
    ]
    waves = assign_waves(result.fleet, list(result.fleet.members.values()))
    assert Counter(result.fleet.waves[index].name for index in waves.values()) == {
        "canary": 1,
        "early": 2,
        "everyone": 3,
    }


def test_a_problem_without_a_place_has_none_in_the_fleet_either() -> None:
    """Others have the path of their project, which may be above the folder of the fleet file."""
    placed = Problem("odd", position=Position("manifests/a.yaml", 3, 1), code="odd")
    placeless = Problem("odd", code="odd")
    result = ValidationResult(None, (placed, placeless))
    for path, below, expected in (("shop", ".", "shop/"), ("shop", "fleets", "fleets/shop/"), (".", ".", "")):
        found = _merge([ProjectValidation(FleetProject("shop", path), "", 1, result)], below)
        positions = [problem.position for problem in found]
        assert positions == [Position(f"{expected}manifests/a.yaml", 3, 1), None]


# --- every problem, as text

ODD_CSV = """\
name,labels.tier,variables.domain,variables.size,variables.region,variables.regoin,variables.zzz
berlin,gold,b.example.com,many,,x,
paris,gold,,many,eu,,
rome,silver,r.example.com,4,us,x,
oslo,gold,,many,,x,1
bern,gold,,many,,x,
wien,gold,,,,x,
"""
PLACES = """\
variables: {domain: {type: string}, size: {type: integer, default: 1}, region: {type: string, default: none}}
"""


def spoil(folder: Path) -> None:
    """Values of the wrong type, values that are missing, variables that are unknown, and projects of one stack."""
    (folder / "members.csv").write_text(ODD_CSV)
    for name in ("base", "shop"):
        (folder / name / "reconciler.yaml").write_text(f"stack: one\n{PLACES}")


def misspell(folder: Path) -> None:
    """Manifests of two projects with the same mistakes, one of which is reported by each group of members."""
    for name in ("base", "shop"):
        (folder / name / "manifests/a.yaml").write_text(DOMAIN.replace("name: shop", "nmae: x"))


def break_settings(folder: Path) -> None:
    """A project whose variables are not known: a variable that the others do not have may be one of it."""
    spoil(folder)
    (folder / "base/reconciler.yaml").write_text("stack: [s]\n")


def choose_environments(folder: Path) -> None:
    """Environments of a project, one of which does not exist; that of the caller counts for none."""
    (folder / "shop/environments").mkdir()
    (folder / "shop/environments/live.yaml").write_text("stack: live\n")
    fleet = FLEET.replace("path: base}", "path: base, environment: gone}").replace(
        "path: shop,", "path: shop, environment: live,"
    )
    (folder / "fleet.yaml").write_text(fleet)


def warn(folder: Path) -> None:
    """A warning of the fleet file beside the errors of its members."""
    spoil(folder)
    (folder / "fleet.yaml").write_text(f"{FLEET}waves: [{{name: a, select: {{tier: bronze}}}}]\n")


def describe(found: FleetValidation) -> Iterator[str]:
    for problem in found.problems:
        yield f"  {'error' if problem.is_error else 'warning'} {problem.code}: {problem}"
    for one in found.projects:
        result = one.result
        problems = len(result.problems)
        yield (
            f"  {one.project.name} for {one.members} members such as {one.example or '(none)'}: environment "
            f"{result.environment}, {result.resources} resources, {problems} problems"
        )
    yield f"  {'valid' if found.is_valid else 'invalid'}"


@pytest.mark.parametrize("below", ["", "fleets/eu"])
def test_every_problem_is_reported_once_in_order(tmp_path: Path, below: str) -> None:
    """`validate.txt` has them, without the folder of the fleet file, which is before each file."""
    lines = []
    for number, change in enumerate((lambda _: None, spoil, misspell, break_settings, choose_environments, warn)):
        top = tmp_path / str(number)
        write_folder(top / below)
        change(top / below)
        file = f"{below}/fleet.yaml".removeprefix("/")
        found = validate_fleet(top, file, Runtime(environ={"RECONCILER_ENV": "live"}))
        lines += [f"{getattr(change, '__doc__', None) or 'A valid fleet.'}", *describe(found)]
        assert found.fleet is not None
        variables = check_variables(found.fleet, top / below, Runtime(environ={"RECONCILER_ENV": "live"}))
        lines += [f"  before a run: {problem}" for problem in variables]
    text = "\n".join(lines) + "\n"
    if below:
        assert text.count(f"{below}/") == len(re.findall(r"\w:\d+:\d+: |: projects ", text))
    compare_golden(Path(__file__).with_name("validate.txt"), text.replace(f"{below}/", "") if below else text)


def test_projects_are_read_with_the_environment_of_the_caller_or_of_the_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def load(root: Path, environ: Mapping[str, str], environment: str | None, placeholder: object) -> Config:
        seen.append((root, dict(environ), environment, placeholder))
        return load_config(root, environ, environment, placeholder)  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_validate, "load_config", load)
    monkeypatch.setenv("RECONCILER_ENV", "live")
    monkeypatch.setenv("OF_THE_PROCESS", "1")
    fleet = load_fleet(folder)
    own = {name: value for name, value in os.environ.items() if name != "RECONCILER_ENV"}
    for runtime, environ in ((Runtime(environ={"RECONCILER_ENV": "x", "A": "b"}), {"A": "b"}), (None, own)):
        for check in (
            lambda runtime: validate_fleet(folder, runtime=runtime),
            lambda runtime: check_variables(fleet, folder, runtime),
        ):
            seen.clear()
            check(runtime)
            read = [entry for entry in seen if entry[3] is make_placeholder]
            assert read == [(folder / name, environ, None, make_placeholder) for name in ("base", "shop")]
