"""`reconciler explain`: documentation of a kind, field or problem code, and the origin of a resource's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.terminal import envelope, exit_codes, lookup, options, output
from reconciler.cli.terminal.group import Command
from reconciler.model.suggestions import did_you_mean

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
@click.option("--live", is_flag=True, help="For KIND/NAME: also show the live values and what changed them.")
@options.project_options
def command(common: options.Options, what: str, live: bool) -> int:
    """Explain a kind, a field, an error code, or the values of a resource.

    KIND[.FIELD] prints the documentation of a kind, of a field of its spec, or of a manifest key such as `deliver`.
    KIND/NAME[.FIELD] prints the values of a declared resource and the file that each one comes from. CODE prints the
    cause and remedy of an error or warning.
    """
    if "/" in what:
        return _explain_resource(common, what, live=live)
    if live:
        raise click.UsageError("--live requires a resource, as in `reconciler explain TLSEdge/payments --live`")
    from reconciler.model.codes import CODES
    from reconciler.rendering import terminal_text
    from reconciler.rendering.reference import error_page
    from reconciler.rendering.reference import terminal as reference

    if what in CODES:
        output.print_result(error_page.text(what, output.width()))
        return exit_codes.DONE
    if "-" in what and what.islower():
        raise click.UsageError(
            f"unknown code {what!r}; {did_you_mean(what, CODES) or 'docs/errors.md lists all codes'}"
        )
    name, _, path = what.partition(".")
    kind = lookup.kind(name)
    if not path:
        output.print_result(reference.page(kind, output.width()))
        words = ", ".join(
            field
            for field in envelope.fields(kind)
            if field not in ("kind", "name", "spec") and not envelope.why_not_taken(kind, field)
        )
        output.print_result("\n".join(("", *terminal_text.wrap(f"Manifest keys: {words}", output.width()))))
        return exit_codes.DONE
    word = path.partition(".")[0]
    beside = {} if word in kind.by_name else envelope.fields(kind)
    if word not in beside:
        output.print_result(reference.field_page(kind, path, lookup.field(kind, path), output.width()))
        return exit_codes.DONE
    page = reference.field_page(kind, path, envelope.find_inside(beside[word], kind, path), output.width())
    note = (
        envelope.why_not_taken(kind, word)
        or "A manifest key, at the same level as `spec`; examples are in docs/manifests.md."
    )
    output.print_result("\n".join((page, "", *terminal_text.wrap(note, output.width()))))
    return exit_codes.DONE


def _explain_resource(common: options.Options, what: str, *, live: bool) -> int:
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.authoring import explain_value
    from reconciler.rendering import provenance

    values = explain_value.read_values(workspaces.source_of(common))
    match = values.find(what)
    if match is None:
        raise click.UsageError(_suggest_declared(what, list(map(str, values.declarations))))
    address, path = match
    lookup.check_path(lookup.kind(address.kind), path)
    traces = values.trace(address, path)
    live_values: list[LiveValue | None] = [None] * len(traces)
    if live:
        opened, on_event = workspaces.open_workspace(common), ReadProgress(common.quiet)
        live_values = workspaces.run(explain_value.read_live_values(opened, address, traces, on_event=on_event))
    output.print_result(provenance.render_provenance(str(address), traces, live_values, output.width()))
    return exit_codes.DONE


def _suggest_declared(what: str, declared: Sequence[str]) -> str:
    kind, _, rest = what.partition("/")
    near = did_you_mean(what, [address for address in declared if address.startswith(f"{kind}/")])
    near = near or did_you_mean(f"{kind}/{rest.partition('.')[0]}", declared)
    return f"{what!r} is not declared; {near or 'declare it, or list existing objects with `reconciler list KIND`'}"
