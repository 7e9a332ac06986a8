"""The option `--format`, and the output of a plan in each chosen format, to a file or standard output.

The formats themselves are in `reconciler.rendering`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from reconciler import __version__
from reconciler.cli.terminal import output, output_files

if TYPE_CHECKING:
    from reconciler.model.access_entry import AccessEntry
    from reconciler.model.health import HealthRow
    from reconciler.model.plan import Plan
    from reconciler.rendering.plan.phrases import Flavour, Resources

FORMS = ("text", "markdown", "html", "json", "sarif", "github", "gitlab", "junit")
Outputs = list[tuple[str, str]]  # (format, file); an empty file name is standard output

_PROJECT_FILE = "reconciler.yaml"  # the location of findings without a manifest, such as deletions


def parse_formats(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> Outputs:
    return parse_outputs(values, FORMS, "json=plan.json")


def parse_outputs(values: Sequence[str], forms: Sequence[str], example: str) -> Outputs:
    """Parses values such as `text` and `json=FILE`. Raises UsageError if two go to one file or to standard output."""
    chosen = []
    for value in values or ("text",):
        form, equals, file = value.partition("=")
        if form not in forms:
            raise click.BadParameter(f"unknown format {form!r}; use one of {', '.join(forms)}")
        if file == "-":
            raise click.BadParameter(f"'-' is not supported; use {form} without a file for standard output")
        if equals and not file:
            raise click.BadParameter(f"{value!r} has no file name; use {form}=FILE, or {form} for standard output")
        chosen.append((form, file))
    if sum(not file for _, file in chosen) > 1:
        raise click.BadParameter(f"only one format can use standard output; add files, as in {example}")
    output_files.check_distinct(*files_of(chosen))
    return chosen


def files_of(chosen: Outputs) -> list[str]:
    """The files that the formats are written to."""
    return [file for _, file in chosen if file]


def complete_format(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of the formats."""
    return [CompletionItem(form) for form in FORMS if form.startswith(incomplete)]


option = click.option(
    "--format",
    "chosen",
    metavar="FORM[=FILE]",
    multiple=True,
    callback=parse_formats,
    shell_complete=complete_format,
    help=f"Output format: {', '.join(FORMS)} (repeatable). [default: text]",
)


class PlanOutput(Struct, frozen=True, dict=True):
    """A plan with the further values that the formats show.

    written      the plan as JSON; needed for all formats other than text
    root         the project directory, to which positions in the plan are relative
    budget       requests per minute; 0 is no limit
    resources    number of declared resources, if known
    environment  name of the environment, if the project has one and it is known
    list_entries the ways into the account as the plan leaves it, or as drift finds it; None: they are not known
    list_health  the health of the objects of the stack, as far as the lists of the plan show it
    """

    plan: Plan
    written: str
    root: Path
    flavour: Flavour
    budget: int = 0
    resources: Resources | None = None
    has_color: bool = False
    environment: str = ""
    list_entries: Callable[[], Sequence[AccessEntry]] | None = None
    list_health: Callable[[], Sequence[HealthRow]] | None = None

    def write_outputs(self, chosen: Outputs) -> None:
        """Writes each format to its file, or to standard output."""
        for form, file in chosen:
            if not file:
                output.print_result(self.render(form, output.width(), has_color=self.has_color))
                continue
            from reconciler.project import atomic_write

            text, place = self.render(form, output.FILE_WIDTH, has_color=False), Path(file)
            if form == "json" and not atomic_write.describe_non_file(place):
                atomic_write.write(place, text)  # a plan file, like that of --out
            else:
                atomic_write.write_output(place, text)

    def render(self, form: str, width: int, *, has_color: bool) -> str:
        renderers: Mapping[str, Callable[[], str]] = {
            "text": lambda: self._text(width, has_color),
            "markdown": self.markdown,
            "html": self._html,
            "json": lambda: self.written,
            "sarif": self._sarif,
            "github": self._github,
            "gitlab": self._gitlab,
            "junit": self._junit,
        }
        return renderers[form]()

    @cached_property
    def digest(self) -> str:
        """The digest of the plan's JSON form."""
        from reconciler.rendering.wire import plan_json

        return plan_json.digest(self.written)

    def markdown(self, limit: int = 0) -> str:
        """The plan as Markdown, in at most `limit` characters; 0 is the longest comment."""
        from reconciler.rendering.plan import markdown

        cover = markdown.Cover(self.digest, self.budget, self.resources)
        return markdown.render_markdown(self.plan, cover, flavour=self.flavour, limit=limit or markdown.LIMIT)

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
        from reconciler.operations.run_context import read_run_context
        from reconciler.rendering.html import plan_page

        return plan_page.render_page(
            self.plan,
            digest=self.digest,
            budget=self.budget,
            resources=self.resources,
            flavour=self.flavour,
            context=read_run_context(os.environ, environment=self.environment, commit=self.plan.commit),
            entries=self.list_entries() if self.list_entries is not None else None,
            health=self.list_health() if self.list_health is not None else (),
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

    def _junit(self) -> str:
        from reconciler.rendering.junit import Suite, render_access_tests

        return render_access_tests([Suite(f"of {self.plan.stack}", self.plan.access_tests)], self._prefix)

    @cached_property
    def _prefix(self) -> str:
        return find_prefix(self.root)


OF_SEVERAL = ("markdown", "html")  # the formats that show several plans together


def write_outputs(outputs: Sequence[PlanOutput], chosen: Outputs, unplanned: Sequence[str] = ()) -> None:
    """Writes each format of a plan, or of several plans together, to its file, or to standard output.

    `unplanned`: environments that could not be planned.
    """
    from reconciler.project import atomic_write
    from reconciler.rendering.plan import markdown

    if len(outputs) == 1 and not unplanned:
        outputs[0].write_outputs(chosen)
        return
    for form, file in chosen:
        is_page = form == "html"
        text = render_html(outputs, unplanned) if is_page else render_markdown(outputs, unplanned, markdown.LIMIT)
        if file:
            atomic_write.write_output(Path(file), text)
        else:
            output.print_result(text)


def render_html(outputs: Sequence[PlanOutput], unplanned: Sequence[str] = ()) -> str:
    """Plans as one HTML page. `unplanned`: environments that could not be planned."""
    from reconciler.operations.run_context import read_run_context
    from reconciler.rendering.html import plan_page

    plans = [plan_output.plan for plan_output in outputs]
    commits = {plan.commit for plan in plans}
    context = read_run_context(os.environ, commit=commits.pop() if len(commits) == 1 else "")
    digests = [plan_output.digest for plan_output in outputs]
    return plan_page.render_overview(plans, unplanned=unplanned, digests=digests, context=context)


def render_markdown(outputs: Sequence[PlanOutput], unplanned: Sequence[str], limit: int) -> str:
    """Plans as one Markdown text without the marker of a stack. `unplanned`: environments that could not be planned."""
    from reconciler.rendering.plan import markdown, overview_markdown

    if len(outputs) == 1 and not unplanned:
        return outputs[0].markdown(limit).partition("\n")[2]
    digests = "".join(f"{markdown.mark_digest(output.digest)}\n" for output in outputs)
    plans = [output.plan for output in outputs]
    return digests + overview_markdown.render_overview(plans, unplanned, limit=limit - len(digests))


def find_prefix(root: Path) -> str:
    """A project directory relative to its Git repository, such as `infra/`, or empty. Code hosts need it."""
    root = root.resolve()
    top = next((path for path in (root, *root.parents) if (path / ".git").exists()), root)
    return "" if top == root else f"{root.relative_to(top).as_posix()}/"
