"""`reconciler explain Kind[.field]`: what a kind is for, a field of it, or a word beside its spec. `explain
Kind/name[.field]`: where what is declared of a resource comes from, and with --live what the platform holds. `explain
CODE`: what the code of a problem means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import envelope, exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.rendering.provenance import LiveValue


@click.command(
    cls=Command,
    examples="""
        reconciler explain TLSEdge
        reconciler explain TLSEdge.tls_termination.min_version
        reconciler explain TLSEdge.moved
        reconciler explain TLSEdge/payments.hostports --env prod
        reconciler explain literal-secret
    """,
)
@click.argument("what", metavar="KIND[/NAME][.FIELD]|CODE", shell_complete=lookup.complete)
@click.option("--live", is_flag=True, help="Of a resource: ask the platform too, and say who moved what differs.")
@options.project_options
def command(common: options.Options, what: str, live: bool) -> int:
    """Explain a kind, a field, a word beside its spec, a problem's code, or where a resource's values come from."""
    if "/" in what:
        return _explain_resource(common, what, live=live)
    if live:
        raise click.UsageError("--live is about a resource; name one, as in TLSEdge/payments")
    from reconciler.model.codes import CODES
    from reconciler.rendering import terminal_text
    from reconciler.rendering.reference import error_page
    from reconciler.rendering.reference import terminal as reference

    if what in CODES:
        output.print_result(error_page.text(what, output.width()))
        return exit_codes.DONE
    if "-" in what and what.islower():
        raise click.UsageError(
            f"there is no code {what!r}; {lookup.suggest(what, CODES) or 'docs/errors.md lists them'}"
        )
    name, _, path = what.partition(".")
    kind = lookup.kind(name)
    if not path:
        output.print_result(reference.page(kind, output.width()))
        words = ", ".join(
            field
            for field in envelope.fields()
            if field not in ("kind", "name", "spec") and not envelope.why_not_taken(kind, field)
        )
        output.print_result("\n".join(("", *terminal_text.wrap(f"Beside spec: {words}", output.width()))))
        return exit_codes.DONE
    word = path.partition(".")[0]
    beside = {} if word in kind.by_name else envelope.fields()
    if word not in beside:
        output.print_result(reference.field_page(kind, path, lookup.field(kind, path), output.width()))
        return exit_codes.DONE
    page = reference.field_page(kind, path, envelope.find_inside(beside[word], kind, path), output.width())
    note = (
        envelope.why_not_taken(kind, word)
        or "It stands beside spec; docs/manifests.md has an example of each such word."
    )
    output.print_result("\n".join((page, "", *terminal_text.wrap(note, output.width()))))
    return exit_codes.DONE


def _explain_resource(common: options.Options, what: str, *, live: bool) -> int:
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import explain_value
    from reconciler.rendering import provenance

    values = explain_value.read_values(workspaces.source_of(common))
    found = values.find(what)
    if found is None:
        raise click.UsageError(_suggest_declared(what, list(map(str, values.declarations))))
    address, path = found
    lookup.check_path(lookup.kind(address.kind), path)
    traces = values.trace(address, path)
    held: list[LiveValue | None] = [None] * len(traces)
    if live:
        opened, on_event = workspaces.open_workspace(common), ReadProgress(common.quiet)
        held = workspaces.run(explain_value.read_live_values(opened, address, traces, on_event=on_event))
    output.print_result(provenance.render_provenance(str(address), traces, held, output.width()))
    return exit_codes.DONE


def _suggest_declared(what: str, declared: Sequence[str]) -> str:
    kind, _, rest = what.partition("/")
    near = lookup.suggest(what, [each for each in declared if each.startswith(f"{kind}/")])
    near = near or lookup.suggest(f"{kind}/{rest.partition('.')[0]}", declared)
    return f"{what!r} is not declared; {near or '`reconciler validate` checks what is'}"
