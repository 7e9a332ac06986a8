"""Writes proposed access tests as a file of the project. Never changes an existing file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from reconciler.model.access_test import Caller
from reconciler.operations.authoring import import_files
from reconciler.operations.errors import OperationError, UnwritableProposal
from reconciler.planning.access_proposals import ProposedTests
from reconciler.project import files
from reconciler.project.access_tests import FILE, MAX_TESTS, PLACES
from reconciler.project.settings.config import Config
from reconciler.project.yaml import emit
from reconciler.rendering.terminal_text import sanitize

__all__ = ["FILE", "check_place", "render", "write"]
_HEAD: Final = "# Proposed by `reconciler access --write-tests`: who gets through now. Change what is not intended.\n"


def render(proposals: Sequence[ProposedTests], environment: str | None = None) -> str:
    """The text of the file, which is the same for the same proposals.

    environment   in which the tests are run; None: in all

    Raises OperationError if they are more tests than a project may have.
    """
    number = sum(len(proposal.targets) * len(proposal.expectations) for proposal in proposals)
    if number > MAX_TESTS:
        raise OperationError(
            f"these are {number:,} access tests, and a project has at most {MAX_TESTS:,}",
            remedy="nothing was written; select entry points with --host, --public or --from",
        )
    return _HEAD + "".join(_render(proposal, environment) for proposal in proposals)


def _render(proposal: ProposedTests, environment: str | None) -> str:
    first, *more = proposal.targets
    others = f" and {len(more)} more" if more else ""
    lines = [f"\n# {sanitize(f'{first}{others}: {proposal.admits}')}"]
    for test in _describe_tests(proposal, environment):
        lines += [line.removeprefix(emit.INDENT) for line in emit.block([test])]
    return "\n".join([*lines, ""])


def _describe_tests(proposal: ProposedTests, environment: str | None) -> Iterator[dict[str, Any]]:
    for expectation in proposal.expectations:
        test: dict[str, Any] = {"from": _shorten(expectation.sources), "to": _shorten(proposal.targets)}
        if caller := _describe_caller(expectation.caller):
            test["with"] = caller
        if proposal.binding != "public":
            test["binding"] = proposal.binding
        test["expect"] = str(expectation.expect)
        if environment is not None:
            test["env"] = environment
        yield test


def _shorten(texts: Sequence[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)


def _describe_caller(caller: Caller) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if caller.method != Caller().method:
        found["method"] = caller.method
    if caller.certificate:
        found["client_certificate"] = caller.certificate
    if caller.provider:
        found["signed_in"] = caller.provider
    if caller.attribute:
        found[caller.attribute] = caller.value
    return {**found, "token": True} if caller.has_token else found


def check_place(config: Config, path: str) -> str:
    """The path below the project's root. Raises UnwritableProposal if the project reads no tests from it."""
    try:
        inside = files.path_inside(path)
    except files.Unreadable as wrong:
        raise UnwritableProposal(f"{path}: {wrong}", remedy=wrong.remedy) from None
    folder = PLACES[-1]
    if inside in PLACES[:-1] or (inside.startswith(f"{folder}/") and inside.endswith(files.MANIFESTS)):
        return inside
    raise UnwritableProposal(
        f"{path} is not read as access tests", remedy=f"name {FILE}, or a file such as {folder}/proposed.yaml"
    )


def write(config: Config, path: str, text: str) -> bool:
    """Writes the file; returns whether it changed. Raises UnwritableProposal if it exists with other content."""
    return bool(import_files.write(config.root, {path: text}, remedy=_REMEDY))


_REMEDY: Final = f"nothing was written; name another file, as in --write-tests={PLACES[-1]}/proposed.yaml"
