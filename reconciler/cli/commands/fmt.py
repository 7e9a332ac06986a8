"""`reconciler fmt`: formats manifests. Keeps comments and values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model.problem import Problem, Rejected
from reconciler.project import atomic_write

if TYPE_CHECKING:
    from reconciler.operations.authoring.inline_children import InlinedProject


@click.command(
    cls=Command,
    examples="""
        reconciler fmt
        reconciler fmt --check
        reconciler fmt manifests/payments.yaml
        reconciler fmt --inline
        reconciler schema --all .reconciler/schemas && reconciler fmt --modeline
    """,
)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if any file is not formatted.")
@click.option(
    "--modeline", is_flag=True, help="Add a first line that names the JSON Schema for editors, where it is missing."
)
@click.option("--inline", is_flag=True, help="Move children, such as rules, into the manifests of their parents.")
@options.project_options
def command(common: options.Options, paths: tuple[str, ...], check: bool, modeline: bool, inline: bool) -> int:
    """Format manifests in place, and print the names of changed files.

    Without FILE, formats all manifests of the project. Comments and values are kept. With --check, prints the first
    lines that would change. --inline converts the whole project: it declares the same resources afterwards. A note
    names each child that cannot be moved, with the reason; such a child is no reason to fail, with --check either.
    """
    from reconciler.project import component_files, files
    from reconciler.project.settings.config import load_config
    from reconciler.project.yaml import format as format_yaml

    root = common.project
    settings = None if paths else load_config(root, os.environ, common.environment)
    others = _list_others(root, settings.policies) if settings is not None and modeline else {}
    paths = tuple(map(common.to_project_path, paths))
    problems: list[Problem] = []
    inlined: Mapping[str, str] = {}
    unmoved: tuple[Problem, ...] = ()
    if inline:
        converted = _move_inline(common, paths)
        inlined, unmoved = converted.texts, converted.unmoved if check else converted.problems
    if settings is not None:
        found = [name for entry in settings.manifests for name in files.find_manifests(root, entry)]
        paths = tuple(dict.fromkeys([*inlined, *found, *_list_components(root, settings.components)]))
    names = sorted({*others, *paths})
    texts = {name: output.read_file(root / name) for name in names}  # fails for a missing file before any is written
    changed: dict[str, str] = {}
    for name, text in texts.items():
        try:
            formatted = inlined.get(name)
            if formatted is None:
                formatted = text if name in others else format_yaml.format_text(text, name)
        except Rejected as rejected:
            problems += rejected.problems
            continue
        if modeline and formatted:
            schemas = os.path.relpath(root / atomic_write.SCHEMAS, (root / name).parent)
            form = others.get(name) or ("component" if component_files.is_component(text) else "manifest")
            formatted = format_yaml.add_modeline(formatted, f"{schemas}/{form}.json")
        if formatted != text:
            changed[name] = formatted
    if not check:
        # Those that grow first: a run that is killed leaves a moved document twice, which is an error, and not nowhere.
        for name in sorted(changed, key=lambda name: len(texts[name]) - len(changed[name])):
            _write(root, name, changed[name], keep_newlines=name in others)
    for name, formatted in changed.items():
        _print_change(name, texts[name], formatted, with_lines=check and name not in others)
    output.print_problems([*problems, *unmoved])
    return exit_codes.ERROR if problems or (check and changed) else exit_codes.DONE


def _list_others(root: Path, policies: Sequence[str]) -> dict[str, str]:
    """The files other than manifests that have a schema, and its name."""
    from reconciler.project.fleets.load import FILE as FLEET_FILE
    from reconciler.project.settings import config

    others = dict.fromkeys(_environments(root), "environment") | {config.FILE: "project"}
    if (root / FLEET_FILE).is_file():
        others[FLEET_FILE] = "fleet"
    others |= dict.fromkeys(_list_access_tests(root), "access-tests")
    return others | dict.fromkeys(_list_policies(root, policies), "policy")


def _print_change(name: str, before: str, after: str, *, with_lines: bool) -> None:
    from reconciler.project.documents import layout_changes
    from reconciler.rendering import terminal_text

    note = "" if after else " (deleted: all of its documents were moved)"
    output.print_result(f"{terminal_text.sanitize(name)}{note}\n")
    if with_lines:
        lines = layout_changes.list_changes(name, before, after)
        output.print_result("".join(f"  {terminal_text.sanitize(line)}\n" for line in lines))


def _move_inline(common: options.Options, paths: tuple[str, ...]) -> InlinedProject:
    """The formatted manifests with children in those of their parents, and the children that stay."""
    from reconciler.cli.terminal import workspaces
    from reconciler.operations.authoring.inline_children import inline_children

    if paths:
        raise click.UsageError("--inline converts the whole project; leave out FILE")
    return inline_children(workspaces.source_of(common))


def _write(root: Path, name: str, text: str, *, keep_newlines: bool) -> None:
    """Writes to the target of a symbolic link. Raises Unreadable if the target is outside the project."""
    from reconciler.project.files import Unreadable

    home, file = os.path.realpath(root), Path(os.path.realpath(root / name))
    if (root / name).is_symlink() and not file.is_relative_to(home):
        raise Unreadable(f"{name} is a symbolic link to a file outside the project", "format the target in its project")
    if not text:
        (root / name).unlink()
        return
    if keep_newlines and b"\r\n" in file.read_bytes():
        text = text.replace("\n", "\r\n")
    # With the same mode: a manifest may contain secrets.
    atomic_write.write(file, text, file.stat().st_mode & 0o7777)


def _list_access_tests(root: Path) -> list[str]:
    from reconciler.operations.access_checks import PLACES
    from reconciler.project import files

    places = (place for place in PLACES if (root / place).exists())
    return [name for place in places for name in files.find_manifests(root, place)]


def _list_components(root: Path, folders: Sequence[str]) -> list[str]:
    """Components below the project's folder: those of other folders may belong to others."""
    from reconciler.project import component_files

    return [name for name in component_files.list_all(root, folders) if not name.startswith("../")]


def _list_policies(root: Path, entries: Sequence[str]) -> list[str]:
    from reconciler.project import files

    return [name for entry in entries if (root / entry).exists() for name in files.find_manifests(root, entry)]


def _environments(root: Path) -> list[str]:
    from reconciler.project.settings.environments import FOLDER

    return sorted(path.relative_to(root).as_posix() for path in (root / FOLDER).glob("*.yaml"))
