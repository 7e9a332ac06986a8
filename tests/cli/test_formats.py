"""The formats of plans and events, on standard output and in files."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from reconciler.cli.terminal import formats
from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.problem import Position
from reconciler.rendering.plan.overview_markdown import render_overview
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.wire import plan_json
from tests.harness.platform import Sandbox
from tests.harness.project import Shell
from tests.rendering.plans import WHOLE
from tests.rendering.test_markdown import large

ROOT = Path(__file__).parents[2]
FAILED = AccessResult(
    "a", AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "everyone", Position("tests/access.yaml", 1, 3)
)


def schema(name: str) -> Any:
    return json.loads((ROOT / f"schemas/{name}.json").read_text(encoding="utf-8"))


def test_one_plan_is_written_in_every_format(shell: Shell, sandbox: Sandbox) -> None:
    forms = ("json", "markdown", "html", "sarif", "github", "gitlab", "junit")
    words = [word for form in forms for word in ("--format", f"{form}=plan.{form}")]
    result = shell("plan", "--format", "text", *words)
    assert (result.code, result.err) == (0, "")
    assert "Plan: 3 to create" in result.out
    files = {form: (shell.root / f"plan.{form}").read_text(encoding="utf-8") for form in forms}
    jsonschema.validate(json.loads(files["json"]), schema("plan"))
    digest = json.loads(files["json"])["integrity"]
    assert f"<!-- reconciler digest={digest} -->" in files["markdown"]
    assert digest in files["html"]
    assert len(json.loads(files["sarif"])["runs"][0]["results"]) == 3
    assert files["github"].count("::notice file=manifests/payments.yaml,line=") == 3
    assert len(json.loads(files["gitlab"])) == 3
    assert '<testsuite name="access tests of prod" tests="0"' in files["junit"]


def test_show_renders_a_plan_file_in_the_formats_of_plan(shell: Shell, sandbox: Sandbox) -> None:
    shell("plan", "--out", "plan.json", "--format", "sarif=there.sarif", "--format", "github=there.txt")
    result = shell("show", "plan.json", "--format", "sarif=here.sarif", "--format", "github=here.txt")
    assert (result.code, result.out) == (0, "")
    for name in ("sarif", "txt"):
        assert (shell.root / f"here.{name}").read_text() == (shell.root / f"there.{name}").read_text()
    digest = json.loads((shell.root / "plan.json").read_text())["integrity"]
    assert f"digest={digest}" in shell("show", "plan.json", "--format", "markdown").out


def test_annotations_count_files_from_the_repositorys_root(
    shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = shell.root / "infra"
    inside.mkdir()
    for name in ("reconciler.yaml", "manifests"):
        (shell.root / name).rename(inside / name)
    (shell.root / ".git").mkdir()
    result = shell("plan", "--project", "infra", "--format", "github")
    assert (
        "::notice file=infra/manifests/payments.yaml,line=1,col=1,title=IPPolicy/office::will be created" in result.out
    )
    shell("plan", "--project", "infra", "--out", "plan.json")
    assert shell("show", "plan.json", "--project", "infra", "--format", "github").out == result.out


@pytest.mark.parametrize("git", ["folder", "file", "link"])
@pytest.mark.parametrize(
    ("tops", "root", "prefix"),
    [
        ([], "infra", ""),
        (["infra"], "infra", ""),
        (["."], "infra", "infra/"),
        (["."], "a b/infra/prod", "a b/infra/prod/"),
        ([".", "infra"], "infra", ""),
        ([".", "infra"], "infra/prod", "prod/"),
    ],
)
def test_the_prefix_of_files_is_the_folder_below_the_nearest_repository(
    tmp_path: Path, git: str, tops: list[str], root: str, prefix: str
) -> None:
    """`.git` is a folder, in a worktree or submodule a file, and with some tools a symbolic link."""
    (tmp_path / root).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / root)
    for top in tops:
        place = tmp_path / top / ".git"
        if git == "folder":
            place.mkdir()
        elif git == "file":
            place.write_text("gitdir: elsewhere\n")
        else:
            place.symlink_to(tmp_path / "elsewhere")
    assert [formats.find_prefix(tmp_path / name) for name in (root, "linked")] == [prefix, prefix]


@pytest.mark.parametrize("form", ["sarif", "github", "gitlab", "junit"])
def test_every_format_with_positions_counts_files_from_the_repositorys_root(tmp_path: Path, form: str) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    (tmp_path / "infra").mkdir()
    plan = replace(WHOLE, access_tests=(FAILED,))
    written = formats.PlanOutput(plan, "", tmp_path / "infra", Flavour.PLAN).render(form, 80, has_color=False)
    found = re.findall(r"[\w/]*\b(?:manifests|tests)/\w+\.yaml", written)
    assert found
    assert [file for file in found if not file.startswith("infra/")] == []


def test_the_plans_of_a_request_fit_the_limit_with_their_digests(tmp_path: Path) -> None:
    plans = [replace(large(60), environment=name) for name in ("staging", "prod")]
    outputs = [formats.PlanOutput(plan, plan_json.write_plan(plan), tmp_path, Flavour.PLAN) for plan in plans]
    digests = "".join(f"<!-- reconciler digest={one.digest} -->\n" for one in outputs)
    for limit in (5_000, 64_000):
        text = formats.render_markdown(outputs, ("lab",), limit)
        assert text == digests + render_overview(plans, ("lab",), limit=limit - len(digests))
        assert len(text) <= limit


def test_a_plan_as_json_is_readable_by_its_owner_only(shell: Shell, sandbox: Sandbox) -> None:
    shell.write("form.json", "what was there, for all to read")
    shell("plan", "--out", "out.json", "--format", "json=form.json")
    assert (shell.root / "form.json").read_text() == (shell.root / "out.json").read_text()
    assert [stat.S_IMODE((shell.root / name).stat().st_mode) for name in ("form.json", "out.json")] == [0o600, 0o600]
    assert shell("show", "out.json", "--format", "json=/dev/null").code == 0


def test_a_format_with_an_empty_file_name_is_a_usage_error(shell: Shell) -> None:
    result = shell("plan", "--format", "json=")
    assert result.code == 64
    assert "'json=' has no file name; use json=FILE, or json for standard output" in result.err


def test_every_event_of_an_apply_matches_the_documented_schema(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("POST /reserved_domains", then="status", status=503)
    sandbox.fault("POST /ip_policies", then="status", status=400)
    shell("apply", "-y", "--events", "events.ndjson")
    lines = [json.loads(line) for line in (shell.root / "events.ndjson").read_text().splitlines()]
    for event in lines:
        jsonschema.validate(event, schema("event"))
    assert {line["event"] for line in lines} == {"started", "retried", "ended"}
    assert [line["attempt"] for line in lines if line["event"] == "retried"] == [2]
    assert {line["outcome"] for line in lines if line["event"] == "ended"} == {"succeeded", "failed", "skipped"}


def test_every_property_of_an_event_is_documented() -> None:
    lines = (ROOT / "docs/outputs.md").read_text(encoding="utf-8").splitlines()
    for form in schema("event")["oneOf"]:
        event = form["properties"]["event"]["const"]
        (row,) = (line for line in lines if line.startswith(f"| `{event}` |"))
        own = form["properties"].keys() - {"version", "event", "call", "address", "method"}
        assert {name for name in own if f"`{name}`" not in row} == set()


def test_a_failed_access_test_has_its_position_in_every_format_of_pipelines(shell: Shell, sandbox: Sandbox) -> None:
    answer = "{on_http_request: [{actions: [{type: custom-response, config: {status_code: 200}}]}]}"
    shell.write(
        "manifests/shop.yaml",
        f"kind: CloudEndpoint\nname: shop\nspec: {{url: 'https://shop.example.com', traffic_policy: {answer}}}\n",
    )
    shell.write("tests/access.yaml", "- {from: 203.0.113.9, to: 'https://shop.example.com', expect: deny}\n")
    forms = ("sarif", "github", "gitlab", "junit")
    words = [word for form in forms for word in ("--format", f"{form}=plan.{form}")]
    assert shell("plan", "--out", "plan.json", *words).code == 4
    files = {form: (shell.root / f"plan.{form}").read_text(encoding="utf-8") for form in forms}
    (found,) = (
        result for result in json.loads(files["sarif"])["runs"][0]["results"] if result["ruleId"] == "access-test"
    )
    place = found["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == (
        "tests/access.yaml",
        {"startLine": 1, "startColumn": 3},
    )
    assert "::error file=tests/access.yaml,line=1,col=3" in files["github"]
    assert "tests/access.yaml" in [entry["location"]["path"] for entry in json.loads(files["gitlab"])]
    assert "tests/access.yaml:1:3: expected deny, found allow: no way in → everyone" in files["junit"]
    assert shell("show", "plan.json", "--format", "junit").out == files["junit"]
