"""The pages about manifests, the project file and the fleet file: their examples are valid, and each key has one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.model.fields.field import Field, fields_of
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.fleets.fleet_file import FleetFile
from reconciler.project.fleets.load import load_fleet
from reconciler.project.settings.project_file import ProjectFile
from reconciler.project.yaml import format as format_yaml
from reconciler.rendering.reference import kind_page

DOCS = Path(__file__).parents[2] / "docs"
MANIFESTS = (DOCS / "manifests.md").read_text(encoding="utf-8")
FLEET = (DOCS / "fleet-file.md").read_text(encoding="utf-8")
PROJECT = (DOCS / "project-file.md").read_text(encoding="utf-8")


def examples(page: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def project(root: Path) -> Path:
    """A project of all examples of the page; a first line with a path names the file."""
    (root / "manifests").mkdir()
    for index, text in enumerate(examples(MANIFESTS)):
        path = re.match(r"# (\S+\.yaml)\n", text)
        file = root / (path[1] if path else f"manifests/{index}.yaml")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


PAGES = sorted([DOCS.parent / "README.md", *DOCS.rglob("*.md"), *(DOCS.parent / "examples").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_manifest_on_a_page_is_formatted(page: Path) -> None:
    manifests = [
        text for text in examples(page.read_text(encoding="utf-8")) if re.search("^kind: ", text, re.MULTILINE)
    ]
    assert [format_yaml.format_text(text, page.name) for text in manifests] == manifests


@pytest.mark.parametrize("environment", [(), ("--env", "staging")], ids=["alone", "staging"])
def test_the_examples_of_manifests_are_a_valid_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environment: tuple[str, ...]
) -> None:
    monkeypatch.setenv("METRICS_KEY", "canary")
    code = main(["validate", "--project", str(project(tmp_path)), *environment])
    lines = capsys.readouterr().err.splitlines()
    # The examples have one environment and deliver secrets, which is what this warning is about.
    others = [line for line in lines[:-1] if "in several environments" not in line]
    assert (code, others, lines[-1]) == (0, [], "9 warnings")


def words(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from words(field.fields or (field.item.fields if field.item else ()))


@pytest.mark.parametrize("word", [*dict.fromkeys(words(fields_of(ManifestDocument))), "for_each", "when"])
def test_every_manifest_key_has_an_example(word: str) -> None:
    assert any(re.search(rf"^[^#]*\b{word}:", line) for text in examples(MANIFESTS) for line in text.splitlines())


def test_the_page_of_the_project_file_is_generated_from_its_model() -> None:
    assert kind_page.project_page(fields_of(ProjectFile)) == PROJECT


def test_the_example_of_a_project_file_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = examples(PROJECT)
    (tmp_path / "reconciler.yaml").write_text(text)
    for name, kept in (("manifests", "kind: IPPolicy\nname: office\n"), ("policies", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(kept)
    words = ["validate", "--project", str(tmp_path), "--var", "domain=example.com"]
    assert (main(words), capsys.readouterr().err) == (0, "")


def test_the_page_of_the_fleet_file_is_generated_from_its_model() -> None:
    assert kind_page.fleet_page(fields_of(FleetFile)) == FLEET


@pytest.mark.parametrize("listed", ["csv", "inline"])
def test_the_examples_of_a_fleet_file_are_valid(tmp_path: Path, listed: str) -> None:
    fleet, members = examples(FLEET)
    (csv,) = re.findall(r"^```\n(name,.*?)^```$", FLEET, re.MULTILINE | re.DOTALL)
    (tmp_path / "fleet.yaml").write_text(
        fleet.replace("members: members.csv\n", members) if listed == "inline" else fleet
    )
    (tmp_path / "members.csv").write_text(csv)
    for name in ("base", "shop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "reconciler.yaml").write_text("stack: s\n")
    loaded = load_fleet(tmp_path)
    (member,) = loaded.members.values()
    assert (member.labels["tier"], member.variables) == ("gold", {"domain": "berlin.example.com"})
    assert [wave.name for wave in loaded.waves] == ["canary", "first", "rest"]


def test_the_map_of_the_architecture_has_every_folder() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)` \| ", page.partition("## Where to look")[2].partition("\n## ")[0], re.MULTILINE)
    package = DOCS.parent / "reconciler"
    folders = {file.parent.relative_to(package).as_posix() for file in package.rglob("*.py")} - {"."}
    assert sorted(rows) == sorted(folders)


def test_the_site_does_not_break_names_in_tables() -> None:
    """The theme breaks code anywhere, which makes `ip_restrict` and `ion` of a field in a narrow column."""
    root = Path(__file__).parents[2]
    (file,) = re.findall(r"^extra_css: \[(\S+)\]$", (root / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    rules = dict(re.findall(r"^([^{/*]+?) *\{ *(.*?) *\}$", (root / file).read_text(encoding="utf-8"), re.MULTILINE))
    assert "word-break: normal" in rules[".md-typeset table code"]
