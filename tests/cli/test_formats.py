"""Plans in every form at once, drift that is recorded, and the report on it; against a real sandbox."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell

ROOT = Path(__file__).parents[2]


def schema(name: str) -> Any:
    return json.loads((ROOT / f"schemas/{name}.json").read_text(encoding="utf-8"))


def edit(sandbox: Sandbox) -> None:
    """Somebody edits the office in the dashboard."""
    policy = sandbox.get("/ip_policies")["ip_policies"][0]["id"]
    sandbox.patch(f"/ip_policies/{policy}", {"description": "edited"})


def test_one_plan_is_written_in_every_form_at_once(shell: Shell, sandbox: Sandbox) -> None:
    forms = ("json", "markdown", "html", "sarif", "github", "gitlab")
    words = [word for form in forms for word in ("--format", f"{form}=plan.{form}")]
    said = shell("plan", "--format", "text", *words)
    assert (said.code, said.err) == (0, "")
    assert "Plan: 3 to create" in said.out
    files = {form: (shell.root / f"plan.{form}").read_text(encoding="utf-8") for form in forms}
    jsonschema.validate(json.loads(files["json"]), schema("plan"))
    digest = json.loads(files["json"])["integrity"]
    assert f"<!-- reconciler digest={digest} -->" in files["markdown"]
    assert digest in files["html"]
    assert len(json.loads(files["sarif"])["runs"][0]["results"]) == 3
    assert files["github"].count("::notice file=manifests/payments.yaml,line=") == 3
    assert len(json.loads(files["gitlab"])) == 3


def test_a_plan_file_is_shown_in_the_forms_of_its_plan(shell: Shell, sandbox: Sandbox) -> None:
    shell("plan", "--out", "plan.json", "--format", "sarif=there.sarif", "--format", "github=there.txt")
    said = shell("show", "plan.json", "--format", "sarif=here.sarif", "--format", "github=here.txt")
    assert (said.code, said.out) == (0, "")
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
    said = shell("plan", "--project", "infra", "--format", "github")
    assert "::notice file=infra/manifests/payments.yaml,line=1,col=1,title=IPPolicy/office::will be created" in said.out
    shell("plan", "--project", "infra", "--out", "plan.json")
    assert shell("show", "plan.json", "--project", "infra", "--format", "github").out == said.out


def test_a_plan_as_json_is_nobody_elses_to_read_wherever_it_was_asked_for(shell: Shell, sandbox: Sandbox) -> None:
    shell.write("form.json", "what was there, for all to read")
    shell("plan", "--out", "out.json", "--format", "json=form.json")
    assert (shell.root / "form.json").read_text() == (shell.root / "out.json").read_text()
    assert [stat.S_IMODE((shell.root / name).stat().st_mode) for name in ("form.json", "out.json")] == [0o600, 0o600]
    assert shell("show", "out.json", "--format", "json=/dev/null").code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("plan", "--out", "x.json", "--format", "html=./x.json"), "x.json is named twice"),
        (("plan", "--out", "x.json", "--format", "html=manifests/../x.json"), "are the same file"),
        (("plan", "--out", "x.json", "--format", "html=link"), "x.json and link are the same file"),
        (("plan", "--format", "html=y", "--format", "sarif=y"), "y is named twice; name a different file for each"),
        (("plan", "--snapshot", "x.json", "--out", "x.json"), "x.json is named twice"),
        (("drift", "--format", "html=y", "--format", "sarif=y"), "y is named twice"),
        (("show", "x.json", "--format", "html=x.json"), "x.json is named twice"),
        (("apply", "x.json", "-y", "--events", "x.json"), "x.json is named twice"),
    ],
)
def test_two_outputs_never_go_to_one_file(shell: Shell, sandbox: Sandbox, words: tuple[str, ...], text: str) -> None:
    shell("plan", "--out", "x.json")
    (shell.root / "link").symlink_to("x.json")
    before = (shell.root / "x.json").read_text()
    said = shell(*words)
    assert said.code == 64
    assert text in said.err
    assert ((shell.root / "x.json").read_text(), (shell.root / "y").exists()) == (before, False)


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--out"),
        ("plan", "--destroy", "--out"),
        ("plan", "--format", "sarif"),
        ("show", "plan.json", "--format", "html"),
        ("drift", "--format", "html"),
        ("report", "--out"),
        ("snapshot", "--out"),
        ("apply", "-y", "--events"),
    ],
)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("manifests/payments.yaml", "manifests"),
        ("manifests/new.yaml", "manifests"),
        ("link", "manifests"),
        ("reconciler.yaml", "settings"),
        ("environments/prod.yaml", "environments"),
        ("policies/all.yaml", "policies"),
    ],
)
def test_no_output_replaces_a_file_of_the_project(
    shell: Shell, sandbox: Sandbox, words: tuple[str, ...], name: str, use: str
) -> None:
    shell("plan", "--out", "plan.json")
    (shell.root / "link").symlink_to("manifests/payments.yaml")
    before = {path: path.read_text() for path in shell.root.rglob("*.yaml")}
    said = shell(*_with_file(words, name))
    assert said.code == 1
    assert f"error: {name} is reserved: it belongs to the project's {use}; write to another file" in said.err
    assert {path: path.read_text() for path in shell.root.rglob("*.yaml")} == before
    assert sandbox.get("/ip_policies")["ip_policies"] == []


def _with_file(words: tuple[str, ...], name: str) -> list[str]:
    """The words with a file as the value of the last one: `--out FILE`, `html=FILE`."""
    return [*words, name] if words[-1].startswith("-") else [*words[:-1], f"{words[-1]}={name}"]


def test_no_output_replaces_a_delivered_token(shell: Shell, sandbox: Sandbox) -> None:
    shell.write("manifests/c.yaml", "kind: TunnelCredential\nname: c\ndeliver: {token: {to_file: secrets/c}}\n")
    assert shell("apply", "-y").code == 0
    token = (shell.root / "secrets/c").read_text()
    said = shell("plan", "--out", "secrets/c")
    assert said.code == 1
    assert "error: secrets/c overlaps with a delivery: TunnelCredential/c to secrets/c (manifests/c.yaml:" in said.err
    assert (shell.root / "secrets/c").read_text() == token


def test_devices_and_pipes_take_several_outputs(shell: Shell, sandbox: Sandbox) -> None:
    words = [word for form in ("text", "json", "html") for word in ("--format", f"{form}=/dev/null")]
    assert shell("plan", *words).code == 0
    assert shell("apply", "-y", "--events", "/dev/null").code == 0


def test_a_form_without_its_file_is_asked_for(shell: Shell) -> None:
    said = shell("plan", "--format", "json=")
    assert said.code == 64
    assert "'json=' has no file name; use json=FILE, or json for standard output" in said.err


def test_every_event_of_an_apply_has_the_form_that_is_documented(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("POST /reserved_domains", then="status", status=503)
    sandbox.fault("POST /ip_policies", then="status", status=400)
    shell("apply", "-y", "--events", "events.ndjson")
    lines = [json.loads(line) for line in (shell.root / "events.ndjson").read_text().splitlines()]
    for each in lines:
        jsonschema.validate(each, schema("event"))
    assert {line["event"] for line in lines} == {"started", "retried", "ended"}
    assert [line["attempt"] for line in lines if line["event"] == "retried"] == [2]
    assert {line["outcome"] for line in lines if line["event"] == "ended"} == {"succeeded", "failed", "skipped"}


def test_every_property_of_an_event_is_in_the_table_of_the_docs() -> None:
    lines = (ROOT / "docs/outputs.md").read_text(encoding="utf-8").splitlines()
    for form in schema("event")["oneOf"]:
        event = form["properties"]["event"]["const"]
        (row,) = (line for line in lines if line.startswith(f"| `{event}` |"))
        own = form["properties"].keys() - {"version", "event", "call", "address", "method"}
        assert {name for name in own if f"`{name}`" not in row} == set()


def test_recorded_drift_and_applies_are_in_the_report(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    assert shell("drift", "--record", "--quiet").code == 0
    edit(sandbox)
    assert shell("drift", "--record").code == 2
    assert shell("report", "--out", "report.html") == Output(0, "", "Wrote report.html.\n")
    page = (shell.root / "report.html").read_text(encoding="utf-8")
    assert ": 1 resource differed, the longest since" in page
    assert "fields differ: <code>description</code>" in page
    assert 'aria-label="API calls by run"' in page
    assert "edited" not in page  # no value is kept


def test_a_report_on_nothing_says_how_to_begin(shell: Shell) -> None:
    said = shell("report")
    assert said.code == 0
    assert "No drift check was recorded; run <code>reconciler drift --record</code>." in said.out
    assert not (shell.root / "state").exists()


def test_events_replace_a_symlink_like_every_output(shell: Shell, sandbox: Sandbox) -> None:
    """A branch can bring a symlink under the name of an output."""
    (shell.root / "target").write_text("of someone else")
    for name in ("events.ndjson", "plan.html"):
        (shell.root / name).symlink_to("target")
    shell("plan", "--format", "html=plan.html")
    assert shell("apply", "-y", "--events", "events.ndjson").code == 0
    assert (shell.root / "target").read_text() == "of someone else"
    assert [path.name for path in shell.root.iterdir() if path.is_symlink()] == []
    assert '"event":"ended"' in (shell.root / "events.ndjson").read_text().replace(" ", "")


def test_part_of_a_stack_is_not_recorded(shell: Shell, sandbox: Sandbox) -> None:
    said = shell("drift", "--record", "--target", "IPPolicy/*")
    assert said == Output(64, "", "error: --record checks the whole stack; select no resources\n")


def test_what_could_not_be_seen_is_not_recorded(shell: Shell, sandbox: Sandbox) -> None:
    shell("apply", "-y")
    sandbox.fault("GET /ip_policies", then="status", status=400, times=0)
    said = shell("drift", "--record")
    assert said.code == 1
    assert "note: drift check not recorded, because the plan has errors" in said.err
    assert "No drift check was recorded" in shell("report").out


def test_a_store_in_memory_records_nothing(shell: Shell, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_STORE", "memory:")
    said = shell("drift", "--record")
    assert said == Output(64, "", "error: --record requires a persistent store; set `store` to a file, not memory:\n")
