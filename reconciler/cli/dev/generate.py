"""Writes what is generated and committed: `schemas/`, `docs/kinds/`, the pages of the project file and of errors, the
list of decisions, the man page, and the README's help block. For developers.

python -m reconciler.cli.dev.generate           writes the files, from the repository's root
python -m reconciler.cli.dev.generate --check   changes nothing; exits 1 if a file is not as it would be written
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from reconciler import kinds
from reconciler.cli.dev import man_page
from reconciler.cli.main import reconciler as command
from reconciler.model.fields.field import fields_of
from reconciler.project.policies.load import PolicyDocument
from reconciler.project.settings.project_file import ProjectFile
from reconciler.rendering.reference import error_page, kind_page
from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas.policy import policy_schema
from reconciler.rendering.schemas.project import editor_schemas
from reconciler.rendering.wire import events, plan_json

_HELP = "<!-- help: written by `make generate` -->\n"
_END = "<!-- end of help -->\n"
_OURS = ("schemas/kinds", "docs/kinds")  # folders that hold nothing else


def generate_files(root: Path) -> Mapping[str, str]:
    """Every generated file: its path below the root, and its text."""
    every = kinds.declarable()
    return {
        **_readme(root / "README.md"),
        "docs/decisions/README.md": _decisions(root / "docs/decisions"),
        "docs/reconciler.1": man_page.render_page(command),
        "schemas/event.json": _json(events.event_schema()),
        **{f"schemas/{name}": _json(made) for name, made in editor_schemas(ProjectFile, every).items()},
        "schemas/plan.json": _json(plan_json.plan_schema()),
        "schemas/policy.json": _json(policy_schema(PolicyDocument)),
        **{f"schemas/kinds/{kind.name}.json": _json(manifest_schema.kind_schema(kind)) for kind in every},
        "docs/errors.md": error_page.page(),
        "docs/project-file.md": kind_page.project_page(fields_of(ProjectFile)),
        "docs/kinds/README.md": kind_page.index(every),
        **{f"docs/kinds/{kind.name}.md": kind_page.page(kind) for kind in every},
    }


def _readme(path: Path) -> dict[str, str]:
    """The README with its help block as the command prints it; nothing where there is none."""
    if not path.is_file():
        return {}
    before, begin, rest = path.read_text(encoding="utf-8").partition(_HELP)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{path}: expected {_HELP!r} and {_END!r}")
    settings = {**command.context_settings, "terminal_width": 80}
    shown = command.get_help(click.Context(command, info_name="reconciler", **settings))
    return {path.name: f"{before}{begin}```\n$ reconciler --help\n{shown}\n```\n{end}{after}"}


def _decisions(folder: Path) -> str:
    """The list of them, by their headings."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("[0-9]*.md"))}
    lines = [f"- [{text.partition(chr(10))[0].lstrip('# ')}]({name})\n" for name, text in pages.items()]
    return "# Decisions\n\nWhy things are as they are, where another might undo it unknowingly.\n\n" + "".join(lines)


def find_stale(root: Path) -> list[str]:
    """A line for each file that is not as it would be written."""
    wanted = generate_files(root)
    found = []
    for name, text in wanted.items():
        path = root / name
        if not path.is_file():
            found.append(f"{name}: missing")
        elif (there := path.read_text(encoding="utf-8")) != text:
            added, removed = _count_lines(there, text)
            found.append(f"{name}: stale, +{added} -{removed} lines")
    return found + [f"{name}: no longer generated" for name in _find_leftover(root, wanted)]


def write(root: Path) -> int:
    """Writes what is stale; answers how many files changed."""
    wanted = generate_files(root)
    changed = 0
    for name, text in wanted.items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed += 1
    for name in _find_leftover(root, wanted):
        (root / name).unlink()
        changed += 1
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m reconciler.cli.dev.generate", description="Generates schemas and pages."
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file is stale")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="the repository's root; the current folder by default"
    )
    chosen = parser.parse_args(arguments)
    if not chosen.check:
        print(f"{write(chosen.root)} of {len(generate_files(chosen.root))} files written")
        return 0
    wrong = find_stale(chosen.root)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(
            f"{len(wrong)} generated files are not current: run python -m reconciler.cli.dev.generate", file=sys.stderr
        )
    return 1 if wrong else 0


def _find_leftover(root: Path, wanted: Mapping[str, str]) -> list[str]:
    there = (path.relative_to(root).as_posix() for folder in _OURS for path in sorted((root / folder).glob("*")))
    return [name for name in there if name not in wanted]


def _count_lines(there: str, wanted: str) -> tuple[int, int]:
    lines = list(difflib.unified_diff(there.splitlines(), wanted.splitlines(), lineterm="", n=0))[2:]
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
