"""`reconciler access`: every way into the account and who gets through; or what becomes of one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.terminal import exit_codes, options, output
from reconciler.cli.terminal.group import Command

if TYPE_CHECKING:
    from reconciler.access.networks import Networks
    from reconciler.model.manifest import Manifest
    from reconciler.operations.access import AccessResult
    from reconciler.project.settings.config import Config

_FORMATS = ("text", "markdown", "json")


@click.command(
    cls=Command,
    examples="""
        reconciler access --public
        reconciler access --declared --format markdown > access.md
        reconciler access --from 203.0.113.0/24 --host '*.example.com'
        reconciler access --write-tests
        reconciler access --explain https://shop.example.com/admin --from 203.0.113.9
    """,
)
@click.option("--declared", is_flag=True, help="Only what the manifests declare, without network access.")
@click.option("--public", "is_public", is_flag=True, help="Only entry points without a gate.")
@click.option("--from", "source", metavar="CIDR", help="Only what can be reached from these addresses.")
@click.option("--host", metavar="GLOB", help="Only entry points of these hosts.")
@click.option("--explain", metavar="URL", help="Explain whether a request to this URL passes, gate by gate.")
@click.option(
    "--write-tests",
    "tests_file",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    help="Write access tests that pass today. [FILE: tests/access.yaml]",
)
@click.option("--method", metavar="METHOD", default="GET", help="Method of the explained request. [default: GET]")
@click.option(
    "--signed-in",
    metavar="PROVIDER[:WHO]",
    help="It is of a user who is signed in: google, google:ann@example.com, github:team=ops, or the URL of an issuer.",
)
@click.option("--certificate", metavar="AUTHORITY", help="It has a client certificate of this authority.")
@click.option("--with-token", is_flag=True, help="It has the token, password or signature that gates ask for.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="text", show_default=True, help="Output format.")
@options.project_options
def command(
    common: options.Options, declared: bool, explain: str | None, tests_file: str | None, form: str, **asked: Any
) -> int:
    """List every way into the account and who gets through, or explain one request.

    Live endpoints of other stacks, of no stack and of agents are listed too.

    With --write-tests, proposes access tests for the entry points of the stack: who gets through today, and who does
    not. An existing file is never changed.
    """
    from reconciler.cli.terminal import workspaces
    from reconciler.cli.terminal.wait_notices import ReadProgress
    from reconciler.operations.access import find_declared_access
    from reconciler.operations.opening.source import read_project

    _check_options(asked, is_explained=explain is not None)
    if tests_file is not None and (explain is not None or form != "text"):
        raise click.UsageError(
            f"--write-tests cannot be used with {'--explain' if explain is not None else '--format'}"
        )
    question = _read_question(explain, asked) if explain is not None else None
    networks = _read_networks(asked["source"]) if explain is None else None
    if declared:
        config, loaded = read_project(workspaces.source_of(common))
        manifest, found = loaded.manifest, find_declared_access(loaded.manifest)
    else:
        workspace = workspaces.open_workspace(common)
        config, manifest = workspace.config, workspace.manifest
        found = workspaces.run(workspace.access(on_event=ReadProgress(common.quiet)))
    if question is not None:
        authority = question.visitor.certificate
        if authority and found.account.find_authority(authority) is None:
            raise click.BadParameter(f"no certificate authority is named {authority!r}", param_hint="--certificate")
        _check_issuer(found, question)
        _print_explanation(manifest, found, question, form)
    elif tests_file is not None:
        if not found.incomplete:
            _write_tests(common, config, found, tests_file, networks, asked)
    else:
        _print_inventory(found, networks, form, is_public=asked["is_public"], host=asked["host"])
    if found.incomplete:
        lines = (f"error: the list of {name} is incomplete: {why}" for name, why in found.incomplete.items())
        raise exit_codes.Stop(exit_codes.ERROR, *lines)
    return exit_codes.DONE


def _check_options(asked: Any, *, is_explained: bool) -> None:
    """click.UsageError if an option has no effect: it filters the list, or it describes the explained request."""
    of_list = {"--public": asked["is_public"], "--host": asked["host"]}
    of_request = {
        "--method": asked["method"] != "GET",
        "--signed-in": asked["signed_in"],
        "--certificate": asked["certificate"],
        "--with-token": asked["with_token"],
    }
    for name, is_given in (of_list if is_explained else of_request).items():
        if is_given:
            raise click.UsageError(f"{name} {'cannot be used with' if is_explained else 'needs'} --explain")


def _write_tests(
    common: options.Options, config: Config, found: AccessResult, file: str, networks: Networks | None, asked: Any
) -> None:
    """Writes the proposed access tests, and prints how many."""
    from reconciler.operations.authoring import access_proposal
    from reconciler.rendering.text_tools import count

    path = access_proposal.check_place(config, common.to_project_path(file) if file else access_proposal.FILE)
    proposals = found.propose_tests(is_public=asked["is_public"], networks=networks, host=asked["host"])
    if not proposals:
        output.print_note("No access tests to propose: no selected entry point of this stack can be tested.")
        return
    environment = config.environment.name if config.environment is not None else None
    is_changed = access_proposal.write(config, path, access_proposal.render(proposals, environment))
    number = sum(len(proposal.targets) * len(proposal.expectations) for proposal in proposals)
    output.print_result(f"{path}: {count(number, 'access test')}{'' if is_changed else ' (unchanged)'}")


def _check_issuer(found: AccessResult, question: Any) -> None:
    """click.BadParameter if the person of a request is signed in where nothing asks for: the URL may be misspelled."""
    from reconciler.access.people import find_unknown_issuer, list_providers

    person = question.visitor.person
    if person is not None and (remedy := find_unknown_issuer(person.provider, lambda: list_providers(found.account))):
        raise click.BadParameter(f"no entry point asks for {person.provider!r}; {remedy}", param_hint="--signed-in")


def _print_inventory(
    found: AccessResult, networks: Networks | None, form: str, *, is_public: bool, host: str | None
) -> None:
    from reconciler.rendering import inventory

    entries = found.select(is_public=is_public, networks=networks, host=host)
    match form:
        case "json":
            output.print_result(inventory.render_json(entries, found.incomplete))
        case "markdown":
            output.print_result(inventory.render_markdown(entries))
        case _:
            output.print_result(inventory.render_text(entries, output.width()))


def _print_explanation(manifest: Manifest, found: AccessResult, question: Any, form: str) -> None:
    from reconciler.access.tracing import explain
    from reconciler.rendering import inventory

    explanation = explain(found.account, question)
    if form == "json":
        output.print_result(inventory.render_explanation_json(explanation))
        return
    declared = manifest.declarations.items()
    positions = {str(address): str(item.position) for address, item in declared}
    output.print_result(inventory.render_explanation(explanation, positions, output.width()))


def _read_networks(source: str | None) -> Networks | None:
    from reconciler.access.networks import parse_networks

    if source is None:
        return None
    try:
        return parse_networks([source])
    except ValueError:
        raise click.BadParameter(
            f"{source!r} is no address or network; write it as 203.0.113.9 or 203.0.113.0/24", param_hint="--from"
        ) from None


def _read_question(url: str, asked: Any) -> Any:
    """The request to explain; click.BadParameter if an option cannot be read."""
    import ipaddress

    from reconciler.access.conditions import ANY_METHOD, OPTIONS
    from reconciler.access.destinations import read_destination
    from reconciler.access.people import read_person
    from reconciler.access.questions import Question, Visitor

    if asked["source"] is None:
        raise click.UsageError("--explain needs --from with the address that the request comes from")
    try:
        source = str(ipaddress.ip_address(asked["source"]))
    except ValueError:
        raise click.BadParameter(
            f"{asked['source']!r} is no address; write it as 203.0.113.9", param_hint="--from"
        ) from None
    try:
        place = read_destination(url)
    except ValueError as error:
        raise click.BadParameter(f"{url!r} {error}", param_hint="--explain") from None
    method = OPTIONS if asked["method"].upper() == OPTIONS else ANY_METHOD
    try:
        person = read_person(asked["signed_in"]) if asked["signed_in"] is not None else None
    except ValueError as error:
        raise click.BadParameter(f"{asked['signed_in']!r} {error}", param_hint="--signed-in") from None
    visitor = Visitor(source, method, asked["certificate"] or "", person, asked["with_token"])
    return Question(place.door, place.host, place.path, visitor)
