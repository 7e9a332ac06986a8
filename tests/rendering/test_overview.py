"""Several plans seen together: each change once, with the environments that it is for, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, FieldChange, Reason
from reconciler.model.plan import Approval, ApprovalItem, Base, Plan, Users
from reconciler.model.problem import Problem
from reconciler.project.settings.approvals import read_approvals
from reconciler.rendering.plan.approval_entries import render_entries
from reconciler.rendering.plan.outline import ChangeRow, Outline, Variant, build_outline
from reconciler.rendering.plan.overview import Overview, Status, _split, build_overview
from tests.harness.tiers import examples
from tests.rendering.crowded import CROWDED
from tests.rendering.plans import BEHIND, OF_A_BRANCH, REVIEWED, WHOLE, plans
from tests.rendering.test_text import compare

SHOP = Address("TLSEdge", "shop")
SEVERAL = st.lists(plans, min_size=2, max_size=3).map(
    lambda several: [replace(plan, environment=f"env-{number}") for number, plan in enumerate(several)]
)


def update(*fields: tuple[str, str, str], address: Address = SHOP) -> Change:
    return Change(address, Action.UPDATE, Reason.FIELDS, fields=tuple(FieldChange(*field) for field in fields))


def of(environment: str, *changes: Change) -> Plan:
    return Plan(f"shop-{environment}", changes=changes, environment=environment)


def content(row: ChangeRow, environment: str) -> Counter[Hashable]:
    """Everything that a row contains for an environment."""
    owners: list[ChangeRow | Variant] = [row, *(part for part in row.variants if environment in part.environments)]
    parts: list[Hashable] = []
    for owner in owners:
        parts += (replace(field, position="") for field in owner.fields)
        parts += ((name, part) for name in ("deliveries", "records", "risks") for part in getattr(owner, name))
    return Counter(parts)


def rows_of(overview: Overview, environment: str) -> Iterator[tuple[str, Action, frozenset[tuple[Hashable, int]]]]:
    for row in overview.rows.changes:
        if not row.environments or environment in row.environments:
            yield row.address, row.action, frozenset(content(row, environment).items())


@given(SEVERAL, st.lists(st.sampled_from(["west", "east"]), unique=True))
@settings(max_examples=examples(20))
def test_each_environment_finds_its_own_changes_and_no_others(
    several: Sequence[Plan], unplanned: Sequence[str]
) -> None:
    overview = build_overview(several, unplanned)
    for plan in several:
        own = build_outline(plan, has_ids=False).changes
        expected = [(row.address, row.action, frozenset(content(row, "").items())) for row in own]
        assert Counter(rows_of(overview, plan.environment)) == Counter(expected)


@pytest.mark.parametrize("plan", [WHOLE, OF_A_BRANCH, REVIEWED, BEHIND], ids=["plan", "branch", "review", "behind"])
@pytest.mark.parametrize("number", [2, 3])
def test_equal_plans_are_listed_once(plan: Plan, number: int) -> None:
    overview = build_overview([replace(plan, environment=f"env-{place}") for place in range(number)])
    rows = build_outline(plan, has_ids=False)
    assert [row.address for row in overview.rows.changes] == [row.address for row in rows.changes]
    assert all(not (row.environments or row.variants) for row in overview.rows.changes)
    assert [row.text for row in overview.rows.problems] == [row.text for row in rows.problems]


def test_one_plan_has_the_rows_of_its_outline() -> None:
    overview = build_overview([WHOLE])
    assert overview.is_of_one
    assert overview.rows == build_outline(WHOLE)


def test_fields_that_all_environments_change_alike_are_common_and_the_others_are_of_their_environment() -> None:
    (row,) = build_overview(
        [
            of("staging", update(("min_version", "1.2", "1.3"), ("host", "a", "staging.example.com"))),
            of("prod", update(("min_version", "1.2", "1.3"), ("host", "a", "example.com"))),
        ]
    ).rows.changes
    assert [field.path for field in row.fields] == ["min_version"]
    assert [(part.environments, part.fields[0].new.line) for part in row.variants if part.fields[0].new] == [
        (("staging",), '"staging.example.com"'),
        (("prod",), '"example.com"'),
    ]


def test_another_action_is_another_change() -> None:
    created = replace(update(("a", "1", "2")), action=Action.CREATE)
    rows = build_overview([of("staging", update(("a", "1", "2"))), of("prod", created)]).rows.changes
    assert [(row.action, row.environments) for row in rows] == [("update", ("staging",)), ("create", ("prod",))]


def test_a_change_is_for_all_only_if_every_environment_was_planned() -> None:
    several = [of("staging", update(("a", "1", "2"))), of("prod", update(("a", "1", "2")))]
    assert build_overview(several).rows.changes[0].environments == ()
    overview = build_overview(several, ["dev"])
    assert overview.rows.changes[0].environments == ("staging", "prod")
    assert overview.environments[-1].status is Status.NOT_PLANNED
    cells = overview.environments[-1]
    assert {cells.changes, cells.access, cells.approvals, cells.drift} == {"unknown"}
    assert [row.name for row in build_overview(several, ["prod"]).environments] == ["staging", "prod", "prod (2)"]


@pytest.mark.parametrize(
    ("plan", "state", "changes", "drift"),
    [
        (of("prod"), "no changes", "none", "unknown"),
        (of("prod", update(("a", "1", "2"))), "ready to apply", "1 to update", "unknown"),
        (replace(of("prod"), problems=(Problem("is invalid", code="x"),)), "blocked by 1 error", "unknown", "unknown"),
        (
            replace(of("prod", update(("a", "1", "2"))), problems=(Problem("is invalid", code="x", confined=True),)),
            "1 error; the rest can be applied",
            "1 to update",
            "unknown",
        ),
        (
            replace(OF_A_BRANCH, environment="prod"),
            "approval required",
            "2 to create",
            "1 to update, 1 added on the platform, pending: 2 to replace, 1 to delete, 1 to move",
        ),
        (replace(BEHIND, environment="prod"), None, None, "unknown"),
        (
            replace(of("prod", replace(update(("a", "1", "2")), cause=Cause.DRIFT)), base=Base("main", "abc")),
            "no changes by this branch",
            "none",
            "1 to update",
        ),
    ],
)
def test_the_row_of_an_environment_is_unknown_where_nothing_is_known(
    plan: Plan, state: str | None, changes: str | None, drift: str | None
) -> None:
    row = build_overview([plan], ["dev"]).environments[0]
    found = (row.state, row.changes, row.drift)
    assert [a for a, b in zip(found, (state, changes, drift), strict=True) if b is not None] == [
        wanted for wanted in (state, changes, drift) if wanted is not None
    ]


def test_approvals_of_one_reason_name_each_change_with_its_environments() -> None:
    def plan_to_approve(environment: str, *names: str) -> Plan:
        items = tuple(ApprovalItem(f"ReservedDomain/{name}", f"rd_{name}", "0f") for name in names)
        approval = Approval("delete", "ReservedDomain", len(items), "irreversible", items=items)
        return replace(of(environment), approvals=(approval,))

    (row,) = build_overview([plan_to_approve("staging", "a", "b"), plan_to_approve("prod", "b")]).rows.approvals
    assert [(subject.name, subject.environments) for subject in row.subjects] == [
        ("ReservedDomain/a", ("staging",)),
        ("ReservedDomain/b", ()),
    ]


def test_one_entry_is_for_all_environments_that_need_it_alike_and_has_no_empty_field() -> None:
    def plan_to_approve(environment: str, *items: ApprovalItem) -> Plan:
        approval = Approval("delete", "ReservedDomain", len(items), "irreversible", items=items)
        return replace(of(environment), approvals=(approval,), created=1_700_000_000.0)

    new, staging, prod = (ApprovalItem("ReservedDomain/a", id, "0f") for id in ("", "rd_1", "rd_2"))
    entries = render_entries(plan_to_approve("staging", new, staging), plan_to_approve("prod", new, prod))
    assert entries.splitlines() == [
        "approvals:",
        "  - delete: ReservedDomain/a",
        "    env: [staging, prod]",
        '    until: "2023-11-28"',
        '    digest: "0f"',
        *(
            "  - delete: ReservedDomain/a",
            "    env: staging",
            '    id: "rd_1"',
            '    until: "2023-11-28"',
            '    digest: "0f"',
        ),
        *(
            "  - delete: ReservedDomain/a",
            "    env: prod",
            '    id: "rd_2"',
            '    until: "2023-11-28"',
            '    digest: "0f"',
        ),
    ]


@pytest.mark.parametrize("name", ["on", "prod", "NULL", "a: b", "1.5", "it's", "x#", "true"])
def test_the_environments_of_an_entry_are_read_as_they_are_called(tmp_path: Path, name: str) -> None:
    item = ApprovalItem("ReservedDomain/a", "rd_1", "0f")
    approval = Approval("delete", "ReservedDomain", 1, "irreversible", items=(item,))
    plan = replace(of(name), approvals=(approval,), created=1_700_000_000.0)
    for several in ((plan,), (plan, replace(plan, environment="other"))):
        (tmp_path / "approvals.yaml").write_text(render_entries(*several), encoding="utf-8")
        assert [entry.id for entry in read_approvals(tmp_path, name)] == ["rd_1"]


def widen(host: str, *causes: Address) -> AccessChange:
    place = f"https://{host}"
    return AccessChange(
        place, Verdict.WIDENS, "office", "everyone", f"GET {place}/", True, tuple(map(str, causes)), "0f"
    )


def test_entry_points_that_the_same_change_opens_are_one_row() -> None:
    office = Address("IPPolicy", "office")
    drift = replace(update(("a", "1", "2"), address=office), cause=Cause.DRIFT)
    ours = replace(update(("a", "1", "2")), cause=Cause.THIS_CHANGE)
    staging = replace(of("staging", ours), access=(widen("staging", SHOP),), base=Base("main", "abc"))
    prod = replace(of("prod", ours, drift), access=(widen("prod", office, SHOP),), base=Base("main", "abc"))
    (row,) = build_overview([staging, prod]).rows.access
    assert [(place.name, place.environments) for place in row.places] == [  # type: ignore[attr-defined]
        ("https://staging", ("staging",)),
        ("https://prod", ("prod",)),
    ]
    assert row.causes == ("TLSEdge/shop",)
    assert [(cause.name, cause.environments) for cause in row.other_causes] == [("IPPolicy/office", ("prod",))]  # type: ignore[attr-defined]


def test_changes_of_an_environment_that_was_not_compared_are_shown_with_those_of_the_branch() -> None:
    overview = build_overview([replace(REVIEWED, environment="prod"), replace(BEHIND, environment="staging")])
    assert overview.rows.is_attributed
    assert all(row.cause is not None for row in overview.rows.changes)
    ((base, environments),) = overview.bases
    assert (base.behind, environments) == (2, ("staging",))


def test_ids_are_left_out_of_values_unless_a_name_stands_for_two_objects() -> None:
    def plan_with_ids(environment: str, *ids: str) -> Plan:
        fields = (FieldChange("ip_policy_ids", [], list(ids)),)
        change = Change(SHOP, Action.UPDATE, Reason.FIELDS, fields=fields)
        return replace(of(environment, change), names=dict.fromkeys(ids, "IPPolicy/office"))

    def values(rows: Outline) -> list[str]:
        return [field.new.line for row in rows.changes for field in row.fields if field.new]

    assert values(build_overview([plan_with_ids("staging", "ipp_1"), plan_with_ids("prod", "ipp_2")]).rows) == [
        "[IPPolicy/office]"
    ]
    twice = "[IPPolicy/office (ipp_1), IPPolicy/office (ipp_2)]"
    assert values(build_outline(plan_with_ids("prod", "ipp_1", "ipp_2"), has_ids=False)) == [twice]


def test_plans_of_one_environment_are_named_by_stack_and_account() -> None:
    def names(*several: Plan) -> list[str]:
        return [row.name for row in build_overview(several).environments]

    assert names(of("prod"), of("dev")) == ["prod", "dev"]
    assert names(Plan("a", environment="prod"), Plan("b", environment="prod")) == ["a", "b"]
    assert names(Plan("a", account="x"), Plan("a", account="y")) == ["a, x", "a, y"]
    assert names(Plan("a"), Plan("a")) == ["a #1", "a #2"]


def test_a_change_with_other_users_in_one_environment_remains_one_change() -> None:
    small, large = (
        replace(of(name, update(("min_version", "1.2", "1.3"))), users={SHOP: Users(users, len(users))})
        for name, users in (("staging", ()), ("prod", (Address("HTTPSEdge", "a"), Address("HTTPSEdge", "b"))))
    )
    (row,) = build_overview([small, large]).rows.changes
    assert (row.users, row.user_count) == (("HTTPSEdge/a", "HTTPSEdge/b"), 2)


@pytest.mark.parametrize(
    ("planned", "unplanned", "is_one"),
    [(0, [], False), (0, ["qa"], False), (1, [], True), (1, ["qa"], False), (2, [], False)],
)
def test_an_overview_is_of_one_plan_only_without_other_environments(
    planned: int, unplanned: list[str], is_one: bool
) -> None:
    overview = build_overview([of(f"e{place}") for place in range(planned)], unplanned)
    assert overview.is_of_one is is_one
    assert len(overview.environments) == planned + len(unplanned)


@pytest.mark.parametrize(
    ("parts", "common", "rest"),
    [
        (["ab", "ab"], "ab", ["", ""]),
        (["ab", "ba"], "ab", ["", ""]),
        (["aab", "ab"], "ab", ["a", ""]),
        (["aaa", "aa", "aab"], "aa", ["a", "", "b"]),
        (["ab", "cd"], "", ["ab", "cd"]),
        (["ab"], "ab", [""]),
        (["", "a"], "", ["", "a"]),
    ],
)
def test_common_parts_are_common_as_often_as_they_are_in_all(parts: list[str], common: str, rest: list[str]) -> None:
    assert _split(parts) == (tuple(common), [tuple(own) for own in rest])


def test_several_plans_are_joined_as_reviewed() -> None:
    error = Problem("is wrong", "", "TLSEdge/a", code="wrong-type")
    asked = Approval(
        "delete", "BotUser", 2, "why", items=(ApprovalItem("BotUser/a", "", "d"), ApprovalItem("BotUser/b", "", "e"))
    )
    granted = replace(asked, granted=True, why="another reason")
    optional = replace(asked, is_optional=True, kind="TLSEdge")
    change = update(("description", "a", "b"))
    drifted = replace(change, cause=Cause.DRIFT, address=Address("BotUser", "x"))
    pending = replace(change, cause=Cause.PENDING, address=Address("BotUser", "y"))
    compared = Base("main", "0123456789")
    known: dict[str, Plan] = {
        "empty": Plan("s"),
        "ready": Plan("s", changes=(change,)),
        "wrong": Plan("s", problems=(error, error, replace(error, text="is odd"))),
        "wrong with changes": Plan("s", changes=(change,), problems=(error,)),
        "confined": Plan("s", changes=(change,), problems=(replace(error, confined=True),)),
        "confined and asked": Plan(
            "s", changes=(change,), problems=(replace(error, confined=True),), approvals=(asked,)
        ),
        "asked": Plan("s", changes=(change,), approvals=(asked, granted, optional)),
        "granted": Plan("s", changes=(change,), approvals=(granted, replace(granted, items=()))),
        "compared": Plan("s", changes=(replace(change, cause=Cause.THIS_CHANGE), drifted, pending), base=compared),
        "by others": Plan(
            "s", changes=(drifted, pending), additions=(replace(drifted, reason=Reason.ADDED),), base=compared
        ),
        "compared and empty": Plan("s", base=compared),
        "behind": Plan("s", changes=(change,), base=replace(compared, behind=1)),
        "another base": Plan("s", changes=(change,), base=replace(compared, problems=(error,))),
        "behind too": Plan("s", changes=(change,), base=replace(compared, behind=1)),
    }

    def list_lines() -> Iterator[str]:
        several = {**known, "reviewed": REVIEWED, "whole": WHOLE, "of a branch": OF_A_BRANCH, "crowded": CROWDED}
        named = [replace(plan, environment=name) for name, plan in several.items()]
        overview = build_overview(named, ["one", "one", "ready"])
        for name in overview.environments:
            cells = (
                f"{name.name}: {name.status.name}",
                name.state,
                name.changes,
                name.access,
                name.approvals,
                name.drift,
            )
            yield " | ".join(cells)
        yield from (f"base: {base.behind} {base.problems} in {names}" for base, names in overview.bases)
        rows = overview.rows
        for part in (
            "rule_changes",
            "problems",
            "approvals",
            "access",
            "forecast",
            "account",
            "commit",
            "counts",
            "base",
        ):
            value = getattr(rows, part)
            yield from (f"{part}: {row}" for row in (value if isinstance(value, tuple) else (value,)))
        for row in (*rows.changes, *rows.additions):
            yield f"{row.address} {row.action} {row.cause} {row.id} {row.position} {row.environments} {len(row.fields)}"
            yield f"  {row.risks} {row.access_risks} {row.deliveries} {row.user_count}"
            for own in row.variants:
                yield f"  {own.environments} {len(own.fields)} {own.deliveries} {own.risks} {own.access_risks}"

    compare("overview-rows.txt", "".join(f"{line}\n" for line in list_lines()))


@pytest.mark.parametrize(
    ("several", "names"),
    [
        ([Plan("a"), Plan("b")], ["a", "b"]),
        ([Plan("a", environment="x"), Plan("b")], ["x", "b"]),
        ([Plan("a", environment="x"), Plan("b", environment="x")], ["a", "b"]),
        ([Plan("a", account="1"), Plan("a", account="2")], ["a, 1", "a, 2"]),
        ([Plan("a", account="1"), Plan("a", account="1")], ["a #1", "a #2"]),
        ([], []),
    ],
)
def test_each_plan_has_a_name_of_its_own(several: list[Plan], names: list[str]) -> None:
    assert [row.name for row in build_overview(several).environments] == names
    unplanned = build_overview(several, ["a", "a", "z"]).environments[len(names) :]
    assert [row.name for row in unplanned] == ["a (2)" if "a" in names else "a", "z"]
