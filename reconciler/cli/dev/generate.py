"""Writes the generated files: schemas, pages of kinds, project file, fleet file and errors, list of decisions, man
page, and the help block of the page of commands.

python -m reconciler.cli.dev.generate           writes the files, from the repository's root
python -m reconciler.cli.dev.generate --check   changes nothing; exits 1 if a file is stale
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
from reconciler.project.fleets.fleet_file import FleetFile
from reconciler.project.policies.load import PolicyDocument
from reconciler.project.settings.project_file import ProjectFile
from reconciler.rendering.fleet import report_json
from reconciler.rendering.reference import error_page, kind_page
from reconciler.rendering.schemas import manifest as manifest_schema
from reconciler.rendering.schemas.project import editor_schemas
from reconciler.rendering.wire import events, plan_json

_HELP = "<!-- help: written by `make generate` -->\n"
_END = "<!-- end of help -->\n"
_FOLDERS = ("schemas/kinds", "docs/kinds")  # folders in which every file is generated


def generate_files(root: Path) -> Mapping[str, str]:
    """The text of every generated file, by path relative to the root."""
    every = kinds.declarable()
    return {
        **_commands(root / "docs/commands.md"),
        "docs/decisions/README.md": _decisions(root / "docs/decisions"),
        "docs/reconciler.1": man_page.render_page(command),
        "schemas/event.json": _json(events.event_schema()),
        "schemas/fleet-run.json": _json(report_json.report_schema()),
        **{
            f"schemas/{name}": _json(schema)
            for name, schema in editor_schemas(ProjectFile, FleetFile, PolicyDocument, every).items()
        },
        "schemas/plan.json": _json(plan_json.plan_schema()),
        **{f"schemas/kinds/{kind.name}.json": _json(manifest_schema.kind_schema(kind)) for kind in every},
        "docs/errors.md": error_page.page(),
        "docs/fleet-file.md": kind_page.fleet_page(fields_of(FleetFile)),
        "docs/project-file.md": kind_page.project_page(fields_of(ProjectFile)),
        "docs/kinds/README.md": kind_page.index(every),
        **{f"docs/kinds/{kind.name}.md": kind_page.page(kind) for kind in every},
    }


def _commands(path: Path) -> dict[str, str]:
    """The page of commands with the current help in its help block; empty if there is no such page."""
    if not path.is_file():
        return {}
    before, begin, rest = path.read_text(encoding="utf-8").partition(_HELP)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{path}: expected {_HELP!r} and {_END!r}")
    settings = {**command.context_settings, "terminal_width": 80}
    help_text = command.get_help(click.Context(command, info_name="reconciler", **settings))
    return {f"docs/{path.name}": f"{before}{begin}```\n$ reconciler --help\n{help_text}\n```\n{end}{after}"}


def _decisions(folder: Path) -> str:
    """The index page of the decisions, by their headings."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("[0-9]*.md"))}
    lines = [f"- [{text.partition(chr(10))[0].lstrip('# ')}]({name})\n" for name, text in pages.items()]
    return "# Decisions\n\nDesign decisions with their reasons.\n\n" + "".join(lines)


def find_stale(root: Path) -> list[str]:
    """A line for each generated file that is missing, stale or no longer generated."""
    wanted = generate_files(root)
    lines = []
    for name, text in wanted.items():
        path = root / name
        if not path.is_file():
            lines.append(f"{name}: missing")
        elif (current := path.read_text(encoding="utf-8")) != text:
            added, removed = _count_lines(current, text)
            lines.append(f"{name}: stale, +{added} -{removed} lines")
    return lines + [f"{name}: no longer generated" for name in _find_leftover(root, wanted)]


def write(root: Path) -> int:
    """Writes stale files, deletes those that are no longer generated, and returns the number of changed files."""
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
    parser.add_argument("--root", type=Path, default=Path(), help="root of the repository (default: current directory)")
    chosen = parser.parse_args(arguments)
    if not chosen.check:
        print(f"{write(chosen.root)} of {len(generate_files(chosen.root))} files written")
        return 0
    stale = find_stale(chosen.root)
    for line in stale:
        print(line, file=sys.stderr)
    if stale:
        print(f"{len(stale)} generated files are stale: run python -m reconciler.cli.dev.generate", file=sys.stderr)
    return 1 if stale else 0


def _find_leftover(root: Path, wanted: Mapping[str, str]) -> list[str]:
    present = (path.relative_to(root).as_posix() for folder in _FOLDERS for path in sorted((root / folder).glob("*")))
    return [name for name in present if name not in wanted]


def _count_lines(current: str, wanted: str) -> tuple[int, int]:
    """The numbers of added and removed lines."""
    lines = list(difflib.unified_diff(current.splitlines(), wanted.splitlines(), lineterm="", n=0))[2:]
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
