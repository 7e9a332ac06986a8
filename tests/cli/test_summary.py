"""The summary of an apply after which fields still differ from the manifests."""

from __future__ import annotations

import pytest

from reconciler.cli.applying import summary
from reconciler.cli.terminal import output
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.problem import Position, Problem, Severity


def test_a_field_that_the_platform_does_not_change_is_reported_with_how_to_ignore_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fields = (
        FieldChange("saml.allow_idp_initiated", False, True, ChangedBy.PLATFORM),
        FieldChange("traffic_policy.value.on_http_request[0].name", "a", "b", ChangedBy.PLATFORM),
    )
    change = Change(Address("HTTPSEdgeRoute", "web"), Action.UPDATE, Reason.FIELDS, id="edghtsrt_1", fields=fields)
    summary.print_remaining((change,))
    output = capsys.readouterr().err
    assert "error: applied, but these resources still differ from the manifests:" in output
    assert "HTTPSEdgeRoute/web" in output
    assert "`lifecycle: {ignore: [saml.allow_idp_initiated, traffic_policy.value]}`" in output


@pytest.mark.parametrize(
    ("number", "more"),
    [(0, ""), (1, ""), (99, ""), (100, ""), (101, "… and 1 more problem;"), (102, "… and 2 more problems;")],
)
@pytest.mark.parametrize("warnings", [0, 3])
def test_a_hundred_problems_are_printed_and_the_rest_is_counted(
    capsys: pytest.CaptureFixture[str], number: int, more: str, warnings: int
) -> None:
    """Errors are printed before warnings are left out, and the last line counts all of them."""
    quiet = [
        Problem(f"warning {place}", "", "", Position("a.yaml", place, 1), Severity.WARNING, code="policy")
        for place in range(1, min(warnings, number) + 1)
    ]
    problems = [
        Problem(f"error {place}", "", "", Position("b.yaml", place, 1), code="policy")
        for place in range(number - len(quiet))
    ]
    output.print_problems([*quiet, *problems])
    lines = capsys.readouterr().err.splitlines()
    printed = [line for line in lines if line.startswith(("a.yaml", "b.yaml"))]
    assert len(printed) == min(number, 100)
    assert len([line for line in printed if "error" in line]) == min(len(problems), 100)
    assert [line[: len(more)] for line in lines if line.startswith("…")] == ([more] if more else [])
    errors = f"{len(problems)} error{'' if len(problems) == 1 else 's'}" if problems else ""
    others = f"{len(quiet)} warning{'' if len(quiet) == 1 else 's'}" if quiet else ""
    assert lines[-1:] == ([", ".join(filter(None, (errors, others)))] if number else [])
