"""What an apply says when the platform holds something else than was sent."""

from __future__ import annotations

import pytest

from reconciler.cli.terminal import apply_summary, exit_codes
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, FieldChange, Mover, Reason


def test_a_field_that_the_platform_keeps_is_named_with_the_way_to_ignore_it(capsys: pytest.CaptureFixture[str]) -> None:
    fields = (
        FieldChange("saml.allow_idp_initiated", False, True, Mover.PLATFORM),
        FieldChange("traffic_policy.value.on_http_request[0].name", "a", "b", Mover.PLATFORM),
    )
    change = Change(Address("HTTPSEdgeRoute", "web"), Action.UPDATE, Reason.FIELDS, id="edghtsrt_1", fields=fields)
    assert apply_summary.rest([change]) == exit_codes.ERROR
    told = capsys.readouterr().err
    assert "error: applied, but these resources still differ from the manifests:" in told
    assert "HTTPSEdgeRoute/web" in told
    assert "`lifecycle: {ignore: [saml.allow_idp_initiated, traffic_policy.value]}`" in told


def test_nothing_is_left_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert apply_summary.rest([]) == exit_codes.DONE
    assert capsys.readouterr().err == ""
