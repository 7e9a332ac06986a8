"""docs/components.md: its component is that of the example, and declares what the page writes out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.project.texts import ProjectFolder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/components.md").read_text(encoding="utf-8")
OFFICE = "kind: IPPolicy\nname: office\nspec: {}\n"


def examples() -> dict[str, str]:
    """The examples of the page by path, and the one without a path as `written-out`."""
    found = re.findall(r"^( *)```yaml\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    texts = [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]
    named = [re.match(r"# (\S+\.yaml)\n", text) for text in texts]
    return {name[1] if name else "written-out": text for name, text in zip(named, texts, strict=True)}


def load_specs(project: ProjectFolder) -> dict[str, Any]:
    return {name: (found.spec, found.lifecycle) for name, found in project.declarations().items()}


def test_eight_lines_declare_what_the_page_writes_out_in_56(tmp_path: Path) -> None:
    texts = examples()
    used, written = ProjectFolder(tmp_path / "used"), ProjectFolder(tmp_path / "written")
    for project in (used, written):
        project.write("manifests/a.yaml", OFFICE)
    for path in ("components/service.yaml", "components/route.yaml", "manifests/shop.yaml"):
        used.write(path, texts[path])
    written.write("manifests/shop.yaml", texts["written-out"])
    assert load_specs(used) == load_specs(written)
    use = [line for line in texts["manifests/shop.yaml"].splitlines() if not line.startswith("#")]
    assert (len(use), len(texts["written-out"].splitlines())) == (8, 56)


def test_the_components_of_the_page_are_those_of_the_example(tmp_path: Path) -> None:
    texts = examples()
    for path in ("components/service.yaml", "components/route.yaml"):
        assert (ROOT / "examples/components" / path).read_text(encoding="utf-8") == texts[path].partition("\n")[2]


def test_a_resource_moves_into_a_component_as_the_page_describes(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path)
    project.write("components/site.yaml", examples()["components/site.yaml"])
    project.write("manifests/a.yaml", "component: site\nname: shop\n")
    (edge,) = project.declarations().values()
    assert [*map(str, edge.moved)] == ["HTTPSEdge/shop"]
