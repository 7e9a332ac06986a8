"""`reconciler fmt`: one style for manifests. Comments and meaning stay."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reconciler.cli import exits, options, talk, whole
from reconciler.cli.group import Command
from reconciler.model.problem import Problem, Rejected


@click.command(
    cls=Command,
    examples="""
        reconciler fmt
        reconciler fmt --check
        reconciler fmt manifests/payments.yaml
        reconciler schema --all .schemas && reconciler fmt --modeline
    """,
)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not laid out so.")
@click.option(
    "--modeline", is_flag=True, help="Let files without one begin with the line that tells editors their schema."
)
@options.offline
def command(common: options.Options, paths: tuple[str, ...], check: bool, modeline: bool) -> int:
    """Lay out the manifests in one style, and print the names of the files that change."""
    from reconciler.project import config, editing, files
    from reconciler.rendering import cells

    root = common.project
    others: dict[str, str] = {}  # files that are no manifests, and their schemas
    if not paths and modeline:
        others = dict.fromkeys(_environments(root), "environment") | {config.FILE: "project"}
    if not paths:
        entries = config.load(root, os.environ, common.environment).manifests
        paths = tuple(dict.fromkeys(name for entry in entries for name in files.manifests(root, entry)))
    problems: list[Problem] = []
    changed = []
    for name in (*others, *paths):
        text = talk.read(root / name)
        try:
            laid_out = text if name in others else editing.fmt(text, name)
            if modeline:
                laid_out = editing.with_modeline(laid_out, name, others.get(name, "manifest"))
        except Rejected as rejected:
            problems += rejected.problems
            continue
        if laid_out != text:
            changed.append(name)
            if not check:
                # The mode stays: a manifest may hold secrets.
                whole.write(root / name, laid_out, (root / name).stat().st_mode & 0o7777)
    talk.answer("".join(f"{cells.clean(name)}\n" for name in changed))
    talk.problems(problems)
    return exits.ERROR if problems or (check and changed) else exits.DONE


def _environments(root: Path) -> list[str]:
    from reconciler.project.environments import FOLDER

    return sorted(each.relative_to(root).as_posix() for each in (root / FOLDER).glob("*.yaml"))
