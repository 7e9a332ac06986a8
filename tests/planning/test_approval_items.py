"""The digests of approvals: another object, action or change has another digest."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.change import Action, ChangedBy, FieldChange
from reconciler.model.value import Hidden, JsonTemplate, Template
from reconciler.planning.comparing.compare import Difference
from reconciler.planning.deciding.approval_items import describe_all, describe_item, describe_part
from reconciler.planning.deciding.decision import Decision
from tests.harness.builders import KINDS, at, live, ref, secret

KIND = next(kind for kind in KINDS if kind.name == "ReservedDomain")


def difference(path: str, old: Any, new: Any) -> tuple[Difference, ...]:
    change = FieldChange(path, old, new, ChangedBy.GIT)
    return (Difference(KIND.by_name["description"], (change,)),)


ITEM = Decision(
    at("ReservedDomain/a"),
    KIND,
    Action.REPLACE,
    live=live("ReservedDomain", "rd_1"),
    differences=difference("description", "old", secret("new")),
)
OTHERS = {
    "address": {"address": at("ReservedDomain/b")},
    "object": {"live": live("ReservedDomain", "rd_2")},
    "action": {"action": Action.DELETE},
    "former address": {"former": at("ReservedDomain/z")},
    "no fields": {"differences": ()},
    "path": {"differences": difference("domain", "old", secret("new"))},
    "old value": {"differences": difference("description", "older", secret("new"))},
    "new secret": {"differences": difference("description", "old", secret("newer"))},
    "text, not a secret": {"differences": difference("description", "old", "new")},
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_approval_does_not_cover_another_change(other: str) -> None:
    assert describe_item(replace(ITEM)) == describe_item(ITEM)
    assert describe_item(replace(ITEM, **OTHERS[other])).digest != describe_item(ITEM).digest  # type: ignore[arg-type]


def test_an_approval_of_a_move_does_not_cover_a_move_from_another_address() -> None:
    moves = [replace(ITEM, action=Action.MOVE, former=at(f"ReservedDomain/{name}")) for name in ("y", "z")]
    assert len({describe_item(move).digest for move in moves}) == len(moves)


def test_an_approval_of_all_changes_does_not_depend_on_their_order() -> None:
    second = replace(ITEM, address=at("ReservedDomain/b"), live=live("ReservedDomain", "rd_2"))
    assert describe_all([ITEM, second]) == describe_all([second, ITEM])
    assert describe_all([ITEM, second]) != describe_all([ITEM])


VALUES: list[Any] = [
    *(None, "None", "", "x", 1, "1", True, "True", 1.5, [], {}, [1], ["1"], {"a": 1}, {"a": "1"}, {"1": "a"}),
    *(ref("IPPolicy/p"), ref("IPPolicy/q"), ref("IPPolicy/p", "name"), "IPPolicy/p", [ref("IPPolicy/p")]),
    *(Template(("x-", ref("IPPolicy/p"))), Template(("y-", ref("IPPolicy/p"))), JsonTemplate(("{", ref("IPPolicy/p")))),
    *(secret("x"), secret("y"), Hidden("00"), Hidden("01"), {"a": Hidden("00")}, {"a": {"b": ref("IPPolicy/p")}}),
]


@pytest.mark.parametrize("side", ["old", "new"])
def test_no_two_values_of_a_field_have_one_digest(side: str) -> None:
    sides = [{"old": "x", "new": "y"} | {side: value} for value in VALUES]
    items = [describe_item(replace(ITEM, differences=difference("description", **values))) for values in sides]
    assert len({item.digest for item in items}) == len(VALUES)
    again = [describe_item(replace(ITEM, differences=difference("description", **values))) for values in sides]
    assert items == again
    assert "IPPolicy" not in repr(items)


def test_an_item_names_its_object_and_a_part_has_its_kind_and_id() -> None:
    assert (describe_item(ITEM).subject, describe_item(ITEM).id) == ("ReservedDomain/a", "rd_1")
    assert describe_item(replace(ITEM, live=None)).id == ""
    one, other = (describe_part(live("IPPolicyRule", id)) for id in ("ipr_1", "ipr_2"))
    assert (one.subject, one.id) == ("IPPolicyRule/ipr_1", "ipr_1")
    assert one.digest != other.digest
    assert (describe_all([ITEM]).subject, describe_all([ITEM]).id) == ("*", "")
