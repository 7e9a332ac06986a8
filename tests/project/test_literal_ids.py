"""Literal ids in fields that refer to objects. Wrong ids are in `mistakes/manifests/ids`."""

from __future__ import annotations

import pytest

from tests.project.texts import load


def test_an_id_with_the_prefix_of_its_kind_is_valid() -> None:
    text = "kind: IPPolicyRule\nname: r\nspec: {ip_policy_id: 'ipp_2', cidr: 10.0.0.0/8, action: allow}\n"
    assert load(text).warnings == ()


@pytest.mark.parametrize("owner", ["usr_1", "bot_1"])
def test_a_user_may_own_a_credential(owner: str) -> None:
    assert load(f"kind: APIKey\nname: a\nid: ak_1\nspec: {{owner_id: {owner}}}\n").warnings == ()
