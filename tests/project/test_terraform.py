"""Expressions of Terraform in values of manifests."""

from __future__ import annotations

import pytest

from reconciler.project.documents import terraform


@pytest.mark.parametrize(
    "text",
    ["${req.host}", "${conn.client_ip}", "${{ var.x }}", "$${var.x", "${vars.x}", "${data.name}", "${variable.x}",
     "${ each }", "var.x and more", "${path}"],
)  # fmt: skip
def test_expressions_of_the_platform_are_not_expressions_of_terraform(text: str) -> None:
    assert terraform.find_inserted(text) is None
    assert terraform.find_bare(text) is None
