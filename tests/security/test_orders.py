"""Text from the platform and from manifests contains no control sequences for a terminal or a pipeline's runner."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.main import main
from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.owner_record import Owner
from reconciler.operations.runtime import Runtime
from reconciler.rendering import terminal_text
from tests.harness.platform import Reachable, Sandbox

ORDERS = {
    "colour": "\x1b[31mred\x1b[0m",
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "device": "\x1bP$qm\x1b\\",
    "C1": "\x9b31mred\x9d0;owned\x9c",
    "carriage return": "100 to delete\r0 to delete",
    "backspace": "evil\b\b\b\bgood",
    "bell and delete": "\a\x7f",
    "lines": "one\n::error::two\r\n##[error]three\x0b\x0cfour\x85five\u2028six\u2029seven",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200f\u061c",
    "zero width": "pay\u200bment\u2060s\ufeff\u00ad\u200d",
    "tags": "\U000e0041\U000e0042",
    "set-output": "::set-output name=token::evil",
    "error": "   ::error file=a.py,line=1,endLine=2,title=x::evil",
    "stop": "::stop-commands::abc",
    "mask": "a long text before it so that it is wrapped just there " + "x" * 40 + " ::add-mask::x",
    "in a word": "x" * 73 + "::error::y",
    "old style": "x ##[set-env name=PATH;]/tmp ##[add-path]/tmp ##vso[task.setvariable variable=x]y ##teamcity[x]",
    "GitLab": "section_start:1:x[collapsed=true]\r\x1b[0Kevil",
    "Markdown": "</details>[x](http://evil.example) ![x](http://evil.example/x.png) <img src=x> @all `x` | a | **b**",
    "half a character": "\ud83d",
}

OURS = re.compile(
    r"::(error|warning|notice) [a-z]+=[^:\n]*::(?!.*::[A-Za-z-]+(\s.*)?::).*$"
)  # and no command within one

WHOLE = {name: text for name, text in ORDERS.items() if name != "half a character"}  # what the sandbox can store


def orders_in(text: str) -> list[str]:
    """The parts of a text that a terminal, or a runner that reads the lines of a log, would execute."""
    found = [
        f"U+{ord(character):04X}"
        for character in text
        if character != "\n" and unicodedata.category(character) in _OBEYED
    ]
    for line in re.split("[\n\r\u2028\u2029\x85]", text):
        stripped = line.lstrip()
        if re.match(r"::[A-Za-z][A-Za-z-]*( .*)?::", stripped):
            found.append(line)
        if re.search(r"##[A-Za-z]*\[", line):
            found.append(line)
    return found


_OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
TEXTS = st.lists(
    st.sampled_from([*ORDERS.values(), "::", ":", "##", "[", "error", " ", "\n", "a", "é"]) | st.text(max_size=5),
    max_size=8,
).map("".join)


@given(TEXTS, st.integers(16, 100))
def test_sanitized_text_has_no_control_sequence_at_any_width(text: str, width: int) -> None:
    assert orders_in("\n".join(terminal_text.wrap(terminal_text.sanitize(text), width))) == []
    assert orders_in("\n".join(f"  {line}" for line in terminal_text.wrap(terminal_text.sanitize(text), width))) == []


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters=":#"), max_size=80))
def test_plain_text_is_unchanged(text: str) -> None:
    assert terminal_text.sanitize(text) == text


@pytest.mark.parametrize(
    "text", ["2001:db8::1", "::1", "::ffff:10.0.0.0/104", "arn:aws:iam::123:role/x", "# heading", "##"]
)
def test_addresses_and_names_with_such_characters_are_unchanged(text: str) -> None:
    assert terminal_text.sanitize(text) == text


# --- whole commands -------------------------------------------------------------------------------------------------

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECONCILER_BASE_URL", sandbox.base_url)
    monkeypatch.setenv("RECONCILER_API_KEY", sandbox.api_key)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: prod\n", encoding="utf-8")

    def run_command(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(words, Runtime(platform=Reachable(sandbox)))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert "unexpected" not in err, err
        return code, out, err

    return run_command


def ours(name: str, text: str) -> str:
    return owners.write(text, Owner("prod", Address.parse(f"IPPolicy/{name}"), f"intent-{name}"[:16]))


def manifest(names: dict[str, str]) -> str:
    """One policy per text, which is its description."""
    documents = [
        f"kind: IPPolicy\nname: p{number}\nspec: {{description: {json.dumps(text)}}}\n"
        for number, text in enumerate(names.values())
    ]
    return "---\n".join(documents)


def test_objects_are_printed_without_control_sequences(run: Run, sandbox: Sandbox, tmp_path: Path) -> None:
    for number, text in enumerate(WHOLE.values()):
        live = {"id": f"ipp_{number}", "description": text, "metadata": ours(f"p{number}", text), "created_at": text}
        sandbox.plant("/ip_policies", {**live, "uri": text})
        sandbox.plant("/ip_policies", {"id": f"ipp_{text}", "description": text, "metadata": text})
    names = dict.fromkeys(list(WHOLE)[: len(ORDERS) // 2], "as declared")  # the others are to be deleted
    (tmp_path / "manifests/a.yaml").write_text(manifest(names), encoding="utf-8")
    for words in (["plan"], ["drift"], ["plan", "--out", "plan.json"], ["show", "plan.json"], ["apply", "-y"]):
        _, out, err = run(*words)
        assert orders_in(out) + orders_in(err) == []
    for form in ("markdown", "html", "sarif", "gitlab"):
        _, out, err = run("show", "plan.json", "--format", form)
        assert orders_in(out) + orders_in(err) == []
    assert [
        line for line in run("show", "plan.json", "--format", "github")[1].splitlines() if not OURS.match(line)
    ] == []
    for words in (["plan", "--format", "json"], ["show", "plan.json", "--format", "json"]):
        _, out, err = run(*words)
        assert orders_in(out) + orders_in(err) == []
        assert out.isascii()
        json.loads(out)


def test_refusals_of_the_platform_are_printed_without_control_sequences(
    run: Run, sandbox: Sandbox, tmp_path: Path
) -> None:
    for number, text in enumerate(WHOLE.values()):
        (tmp_path / "manifests/a.yaml").write_text(manifest({"a": "x"}), encoding="utf-8")
        error = {"error_code": text, "status_code": 400, "msg": text, "details": {"operation_id": text}}
        sandbox.fault("POST /ip_policies", then="status", status=400, body=error)
        _, out, err = run("apply", "-y", "--events", "-", "--events", "-")
        assert orders_in(out) + orders_in(err) == []
        _, out, err = run("apply", "-y", "--events", f"{number}.ndjson") if number % 5 == 0 else (0, "", "")
        sandbox.fault("GET /*", then="status", status=400, body=error, times=0)
        _, out, err = run("plan")
        assert orders_in(out) + orders_in(err) == []
        sandbox.delete("/_sandbox/faults")
    for words in (["history"], ["history", "--format", "json"]):
        _, out, err = run(*words)
        assert orders_in(out) + orders_in(err) == []


def test_each_event_is_one_line_of_json(run: Run, sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "manifests/a.yaml").write_text(manifest({"a": "x"}), encoding="utf-8")
    msg = " ".join(WHOLE.values())
    for code, status in (("446", 400), ("1", 400)):
        error = {"error_code": f"ERR_NGROK_{code}", "status_code": status, "msg": msg, "details": {}}
        sandbox.fault("POST /ip_policies", then="status", status=status, body=error)
    run("apply", "-y", "--events", "events.ndjson")
    text = (tmp_path / "events.ndjson").read_text(encoding="utf-8")
    assert orders_in(text) == []
    assert {json.loads(line)["event"] for line in text.splitlines()} == {"started", "retried", "ended"}


@pytest.mark.parametrize("name", ORDERS)
def test_problems_of_a_manifest_are_printed_without_control_sequences(run: Run, tmp_path: Path, name: str) -> None:
    spelt = json.dumps(ORDERS[name], ensure_ascii=name != "tags")  # YAML has no pairs of escapes
    documents = [
        f"{spelt}: 1",
        f"kind: {spelt}\nname: a",
        f"kind: IPPolicy\nname: {spelt}",
        f"kind: IPPolicy\nname: a\nspec: {{{spelt}: 1}}",
        f"kind: IPPolicy\nname: a\nspec: {{description: [{spelt}]}}",
        f"kind: IPPolicy\nname: b\nspec: {{description: {{ref: {spelt}}}}}",
        f"kind: IPPolicy\nname: c\nspec: {{description: {{from_env: {spelt}}}}}",
        f"kind: IPPolicy\nname: d\nspec: {{description: {{from_file: {spelt}}}}}",
        f"kind: IPRestriction\nname: a\nspec: {{type: {spelt}}}",
        f"kind: ReservedDomain\nname: a\nspec: {{domain: {spelt}}}",
        f"kind: TCPEdge\nname: a\nspec: {{hostports: [{spelt}]}}",
        f"kind: TunnelCredential\nname: a\nspec: {{acl: [{spelt}]}}\ndeliver: {{{spelt}: {{to_file: a}}}}",
        f"kind: TunnelCredential\nname: b\ndeliver: {{token: {{to_file: {spelt}}}}}",
        f"kind: SSHCredential\nname: b\nspec: {{public_key: {spelt}}}",
        f"kind: CloudEndpoint\nname: b\nspec: {{url: {spelt}, traffic_policy: {spelt}}}",
        f"kind: IPPolicy\nname: e\nmoved: {spelt}\nensure: {spelt}\nlifecycle: {{ignore: [{spelt}]}}",
        f"- {spelt}",
        f"a: 1\n? {spelt}\n: 1\n? {spelt}\n: 2",
    ]
    (tmp_path / "manifests/a.yaml").write_text("\n---\n".join(documents) + "\n", encoding="utf-8")
    _, out, err = run("validate")
    assert err.count("\n") >= (2 if name == "half a character" else len(documents) - 2)
    assert orders_in(out) + orders_in(err) == []
    _, out, err = run("fmt", "--check")
    assert orders_in(out) + orders_in(err) == []


def test_file_names_and_arguments_are_printed_without_control_sequences(run: Run, tmp_path: Path) -> None:
    for number, text in enumerate(ORDERS.values()):
        name = os.fsdecode(text.encode(errors="surrogatepass").replace(b"/", b"")[:200])
        (tmp_path / f"manifests/{number}{name}.yaml").write_text("kind:   Nope\nname: a\n", encoding="utf-8")
        for words in (["explain", text], [text], ["plan", f"--{text}"], ["plan", "--var", text], ["show", text[:100]]):
            if "\0" not in text and "\ud83d" not in text:
                _, out, err = run(*words)
                assert orders_in(out) + orders_in(err) == []
    for words in (["validate"], ["fmt", "--check"], ["fmt"], ["plan"]):
        _, out, err = run(*words)
        assert orders_in(out) + orders_in(err) == []


def test_a_hostile_plan_file_is_printed_without_control_sequences(run: Run, tmp_path: Path) -> None:
    from reconciler.rendering.wire.plan_json import _integrity

    (tmp_path / "manifests/a.yaml").write_text(manifest({"a": "x"}), encoding="utf-8")
    run("plan", "--out", "plan.json")
    made = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    del made["integrity"]
    hostile = "".join(WHOLE.values())
    made["problems"] = [
        {"text": hostile, "remedy": hostile, "subject": hostile, "position": None, "severity": "warning"}
    ]
    made["stack"] = hostile
    made["integrity"] = _integrity(made)
    (tmp_path / "plan.json").write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    forms = [
        ["show", "plan.json", "--format", form] for form in ("text", "json", "markdown", "html", "sarif", "gitlab")
    ]
    for words in (*forms, ["apply", "plan.json", "-y"]):
        code, out, err = run(*words)
        assert orders_in(out) + orders_in(err) == []
        assert out or code
