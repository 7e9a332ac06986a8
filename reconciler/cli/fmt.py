"""`reconciler fmt`: one style for manifests. Comments and meaning stay."""

from __future__ import annotations

import os

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
    """,
)
@click.argument("paths", nargs=-1, metavar="[FILE]...")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not laid out so.")
@options.offline
def command(common: options.Options, paths: tuple[str, ...], check: bool) -> int:
    """Lay out the manifests in one style, and print the names of the files that change."""
    from reconciler.project import config, editing, files
    from reconciler.rendering import cells

    root = common.project
    if not paths:
        entries = config.load(root, os.environ).manifests
        paths = tuple(dict.fromkeys(name for entry in entries for name in files.manifests(root, entry)))
    problems: list[Problem] = []
    changed = []
    for name in paths:
        text = talk.read(root / name)
        try:
            laid_out = editing.fmt(text, name)
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
