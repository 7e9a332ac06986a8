"""The forms in which a plan is shown: `--format`, given as often as one likes, each to a file or to standard output.

Knows what a form needs beside the plan; how it is spelt is said in `reconciler.rendering`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler import __version__
from reconciler.cli.terminal import output

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.rendering.plan.phrases import Flavour, Resources

FORMS = ("text", "markdown", "html", "json", "sarif", "github", "gitlab")
Outputs = list[tuple[str, str]]  # (form, file), where no file is standard output

_PROJECT_FILE = "reconciler.yaml"  # stands for what no manifest mentions any more


def parse_formats(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> Outputs:
    """`text` or `json=FILE`, as (form, file); standard output holds one."""
    chosen = []
    for value in values or ("text",):
        form, equals, file = value.partition("=")
        if form not in FORMS:
            raise click.BadParameter(f"{form!r} is not one of {', '.join(FORMS)}")
        if file == "-":
            raise click.BadParameter(f"'-' is not standard output here; write {form} without a file")
        if equals and not file:
            raise click.BadParameter(f"{value!r} names no file; write {form}=FILE, or {form} for standard output")
        chosen.append((form, file))
    if sum(not file for _, file in chosen) > 1:
        raise click.BadParameter("only one can go to standard output; give the others a file, as in json=plan.json")
    return chosen


option = click.option(
    "--format",
    "chosen",
    metavar="FORM[=FILE]",
    multiple=True,
    callback=parse_formats,
    help=f"How to show it: {', '.join(FORMS)}; may be given several times; text if none is.",
)


@dataclass(frozen=True)
class PlanOutput:
    """A plan with what the forms say around it.

    written    the plan's JSON form
    root       the project's folder: positions in the plan are below it
    budget     requests a minute, 0 for none
    resources  how many are declared, if that is known
    """

    plan: Plan
    written: str
    root: Path
    flavour: Flavour
    budget: int = 0
    resources: Resources | None = None
    has_color: bool = False

    def write_outputs(self, chosen: Outputs) -> None:
        """Each form to its file, or to standard output."""
        for form, file in chosen:
            if not file:
                sys.stdout.write(self.render(form, output.width(), has_color=self.has_color))
                continue
            from reconciler.project import atomic_write

            text, place = self.render(form, output.FILE_WIDTH, has_color=False), Path(file)
            if form == "json" and not atomic_write.describe_non_file(place):
                atomic_write.write(place, text)  # as --out does: it is a plan file
            else:
                atomic_write.write_output(place, text)

    def render(self, form: str, width: int, *, has_color: bool) -> str:
        spellings: Mapping[str, Callable[[], str]] = {
            "text": lambda: self._text(width, has_color),
            "markdown": self.markdown,
            "html": self._html,
            "json": lambda: self.written,
            "sarif": self._sarif,
            "github": self._github,
            "gitlab": self._gitlab,
        }
        return spellings[form]()

    @cached_property
    def digest(self) -> str:
        """Of the whole plan."""
        from reconciler.rendering.wire import plan_json

        return plan_json.digest(self.written)

    def markdown(self) -> str:
        from reconciler.rendering.plan import markdown

        cover = markdown.Cover(self.digest, self.budget, self.resources)
        return markdown.render_markdown(self.plan, cover, flavour=self.flavour)

    def _text(self, width: int, has_color: bool) -> str:
        from reconciler.rendering.plan import text

        return text.render_text(
            self.plan,
            width=width,
            color=has_color,
            budget=self.budget,
            resources=self.resources,
            flavour=self.flavour,
        )

    def _html(self) -> str:
        from reconciler.rendering.html import plan_page

        return plan_page.render_page(
            self.plan, digest=self.digest, budget=self.budget, resources=self.resources, flavour=self.flavour
        )

    def _sarif(self) -> str:
        from reconciler.rendering.plan import findings, sarif

        found = findings.list_findings(self.plan, flavour=self.flavour, prefix=self._prefix)
        return sarif.render_sarif(found, version=__version__, fallback=self._prefix + _PROJECT_FILE)

    def _github(self) -> str:
        from reconciler.rendering.plan import ci_annotations, findings

        return ci_annotations.render_github(
            findings.list_findings(self.plan, flavour=self.flavour, prefix=self._prefix)
        )

    def _gitlab(self) -> str:
        from reconciler.rendering.plan import ci_annotations, findings

        found = findings.list_findings(self.plan, flavour=self.flavour, prefix=self._prefix)
        return ci_annotations.render_gitlab(found, fallback=self._prefix + _PROJECT_FILE)

    @cached_property
    def _prefix(self) -> str:
        """The project's folder below the repository's, where code hosts count from; `infra/`, or nothing."""
        root = self.root.resolve()
        top = next((path for path in (root, *root.parents) if (path / ".git").exists()), root)
        return "" if top == root else f"{root.relative_to(top).as_posix()}/"
