"""Which changes one recorded approval covers: the digest of another object, action or change is another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.change import Action, ChangedBy, FieldChange
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.deciding.approval_items import describe_all, describe_item
from reconciler.planning.deciding.decision import Decision
from tests.planning.builders import KINDS, at, live, secret

KIND = next(kind for kind in KINDS if kind.name == "ReservedDomain")


def differing(path: str, old: Any, new: Any) -> tuple[Difference, ...]:
    change = FieldChange(path, old, new, ChangedBy.GIT)
    return (Difference(KIND.by_name["description"], (change,)),)


ITEM = Decision(
    at("ReservedDomain/a"),
    KIND,
    Action.REPLACE,
    live=live("ReservedDomain", "rd_1"),
    differences=differing("description", "old", secret("new")),
)
OTHERS = {
    "address": {"address": at("ReservedDomain/b")},
    "object": {"live": live("ReservedDomain", "rd_2")},
    "action": {"action": Action.DELETE},
    "former address": {"former": at("ReservedDomain/z")},
    "no fields": {"differences": ()},
    "path": {"differences": differing("domain", "old", secret("new"))},
    "old value": {"differences": differing("description", "older", secret("new"))},
    "new secret": {"differences": differing("description", "old", secret("newer"))},
    "text, not a secret": {"differences": differing("description", "old", "new")},
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_approval_of_one_change_is_none_of_another(other: str) -> None:
    assert describe_item(replace(ITEM)) == describe_item(ITEM)
    assert describe_item(replace(ITEM, **OTHERS[other])).digest != describe_item(ITEM).digest  # type: ignore[arg-type]


def test_an_approval_of_all_changes_does_not_depend_on_their_order() -> None:
    second = replace(ITEM, address=at("ReservedDomain/b"), live=live("ReservedDomain", "rd_2"))
    assert describe_all([ITEM, second]) == describe_all([second, ITEM])
    assert describe_all([ITEM, second]) != describe_all([ITEM])
