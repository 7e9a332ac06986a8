"""The summary of an apply after which fields still differ from the manifests."""

from __future__ import annotations

import pytest

from reconciler.cli.applying import summary
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason


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
