"""Shapes of plans: plans that differ only in values of variables have one shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.fleet import shapes
from reconciler.fleet.shapes import shape_of
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_test import AccessTest, Expected
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Order, Reason, Risk
from reconciler.model.fleet import Member
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, Call, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.value import Hidden, JsonTemplate, Ref, Secret, Template, canonical
from reconciler.planning.judging.rules import Rules
from reconciler.planning.judging.strictness import SETTINGS, is_demand
from reconciler.planning.policies.rule import LANGUAGE, Rule
from tests.harness.builders import declare, manifest
from tests.harness.golden import compare_golden

WORDS = st.text("abcdefgh0123456789", min_size=3, max_size=8)


def member(name: str, **variables: Any) -> Member:
    return Member(name, {}, variables)


def change(address: str = "ReservedDomain/a", **options: Any) -> Change:
    options.setdefault("fields", ())
    return Change(Address.parse(address), options.pop("action", Action.UPDATE), Reason.FIELDS, **options)


def plan(*changes: Change, **options: Any) -> Plan:
    return Plan("shop", changes=changes, **options)


def field(path: str, old: Any, new: Any, changed_by: ChangedBy = ChangedBy.GIT) -> FieldChange:
    return FieldChange(path, old, new, changed_by)


RULES = Rules(dict.fromkeys((name for name, order in SETTINGS.items() if order is not None), 1))


def shape(of: Plan, owner: Member, project: str = "web", rules: Rules = RULES) -> str:
    return shape_of(of, project, owner, rules)


@given(WORDS, WORDS, WORDS, WORDS, st.integers(), st.integers())
def test_values_of_variables_do_not_change_the_shape(
    one: str, two: str, old: str, new: str, five: int, six: int
) -> None:
    def of(name: str, before: str, after: str, number: int) -> str:
        fields = (
            field("description", f"shop {before}", f"shop of {after}, in {name}"),
            field("metadata", {"labels": [before]}, {"labels": [after], after: number}),
        )
        return shape(
            plan(change(f"ReservedDomain/{name}", id=f"rd_{name}", fields=fields)), owner(name, before, after, number)
        )

    def owner(name: str, before: str, after: str, number: int) -> Member:
        return member(f"m-{name}", host=name, was={"site": before}, site=after, size=number)

    if len({"shop", "of", "in", one, two, old, new}) == 7:
        assert of(one, old, new, five) == of(two, new, old, six)


@given(WORDS, WORDS)
def test_a_value_of_no_variable_changes_the_shape(one: str, two: str) -> None:
    shapes = {
        shape(plan(change(fields=(field("description", "x", value),))), member("acme", site="unused-value"))
        for value in (one, two)
    }
    assert len(shapes) == len({one, two})


def test_a_value_inside_a_longer_word_is_not_replaced() -> None:
    one = shape(plan(change(fields=(field("description", None, "shops"),))), member("a", site="shop"))
    two = shape(plan(change(fields=(field("description", None, "bazaars"),))), member("b", site="bazaar"))
    assert one != two


def test_only_complete_numbers_are_replaced() -> None:
    def of(size: int, text: str) -> str:
        return shape(
            plan(change(fields=(field("size", 1000 + size, size), field("text", None, text)))), member("a", n=size)
        )

    assert of(5, "5 shops") != of(6, "6 shops")  # a digit in a text is not replaced
    assert of(5, "shops") != of(6, "shops")  # 1005 is the value of no variable

    def whole(size: int) -> str:
        return shape(plan(change(fields=(field("size", None, size),))), member("a", n=size))

    assert whole(5) == whole(6)


def test_booleans_change_the_shape() -> None:
    def of(flag: bool) -> str:
        return shape(plan(change(fields=(field("enabled", None, flag),))), member("a", flag=flag))

    assert of(True) != of(False)


def test_ids_and_secrets_do_not_change_the_shape() -> None:
    def of(name: str, digest: str) -> str:
        fields = (field("ip_policy_ids", [f"ipp_{name}"], []), field("secret", Hidden(digest), Hidden(digest + "1")))
        whole = plan(change(id=f"edg_{name}", fields=fields), names={f"ipp_{name}": "IPPolicy/office"})
        return shape(whole, member(name))

    assert of("one", "a1") == of("two", "b2")


def test_an_object_that_was_added_on_the_platform_has_the_same_shape_in_every_account() -> None:
    def of(name: str, cidr: str = "0.0.0.0/0") -> str:
        id = f"ipr_{name * 8}"
        added = change(f"IPPolicyRule/{id}", id=id, action=Action.DELETE, fields=(field("cidr", cidr, None),))
        return shape(plan(additions=(added,)), member(name))

    assert of("one") == of("two")
    assert of("one", "10.0.0.0/8") != of("one")


def test_access_is_part_of_the_shape() -> None:
    """The same change of fields may open an entry point in one account, and none in another one."""

    def of(name: str, **changed: Any) -> str:
        host = f"{name}.example.com"
        entry = AccessChange(f"https://{host}", Verdict.WIDENS, f"sign-in at {name}", "everyone", host, True, (), name)
        return shape(plan(change(), access=(replace(entry, **changed),)), member(name))

    assert of("one") == of("two")
    changes: list[dict[str, Any]] = [
        {"entry_point": "https://other.example.com"},
        {"verdict": Verdict.EXPOSES},
        {"before": "no one"},
        {"after": "203.0.113.0/24"},
        {"is_certain": False},
        {"depends_on": ("not read: IPPolicy",)},
    ]
    assert len({of("one"), shape(plan(change()), member("one")), *(of("one", **other) for other in changes)}) == 8


def test_everything_that_a_reviewer_approves_is_part_of_the_shape() -> None:
    base = change(fields=(field("description", "x", "y"),))
    delivery = Delivery("to_file", "secrets/token")
    call = Call("create ReservedDomain/a", base.address, Verb.CREATE, "/reserved_domains", deliver={"token": delivery})
    plans = [
        plan(),
        plan(base),
        plan(base, base),
        plan(additions=(base,)),
        plan(change(action=Action.DELETE, fields=base.fields)),
        plan(change("ReservedDomain/b", fields=base.fields)),
        plan(change(fields=(field("description", "z", "y"),))),
        plan(change(fields=(field("description", "x", "z"),))),
        plan(change(fields=(field("metadata", "x", "y"),))),
        plan(change(fields=(field("description", "x", "y", ChangedBy.PLATFORM),))),
        plan(change(fields=base.fields, risks=(Risk.WIDENS_ACCESS,))),
        plan(change(fields=base.fields, protected=True)),
        plan(change(fields=base.fields, former=Address.parse("ReservedDomain/old"))),
        plan(base, approvals=(Approval("delete", "ReservedDomain", 1, "why"),)),
        plan(base, approvals=(Approval("delete", "ReservedDomain", 2, "why"),)),
        plan(base, calls=(call,)),
    ]
    shapes = [shape(one, member("acme")) for one in plans]
    assert len(set(shapes)) == len(plans)
    assert shape(plan(base), member("acme"), "api") not in shapes
    assert all(len(digest) == 12 for digest in shapes)


SITES = (member("one", site="acme", n=5), member("two", site="bazaar", n=6))
LEAVES = st.one_of(
    st.sampled_from(
        [
            "acme",
            "bazaar",
            "x-acme",
            "${{ var.site }}",
            "var.site",
            "text",
            "map",
            "(sensitive)",
            "${{ ReservedDomain/a }}",
        ]
    ),
    st.sampled_from([5, 6, 5.5, True, False, None, "5", Hidden("1"), Ref(Address("ReservedDomain", "a"))]),
    st.sampled_from([Template(("acme-", Ref(Address("ReservedDomain", "a")))), Ref(Address("ReservedDomain", "acme"))]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["acme", "bazaar", "${{ var.site }}", "text", "map", "reference", "sensitive", "number"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def _normalize(value: Any, owner: Member) -> Any:
    """The value with its variables replaced by unique objects."""
    variables = {owner.variables["site"]: ("site",), owner.name: ("name",)}
    match value:
        case Ref(target, _):
            return ("ref", target.kind, _normalize(target.name, owner))
        case Template(parts):
            return ("template", *(_normalize(part, owner) for part in parts))
        case Hidden():
            return ("sensitive",)
        case str():
            words = re.split(r"(?<![A-Za-z0-9])(acme|bazaar|one|two)(?![A-Za-z0-9])", value)
            return tuple(variables.get(word, word) for word in words)
        case dict():
            return (
                "map",
                frozenset((_normalize(key, owner), _normalize(item, owner)) for key, item in value.items()),
            )
        case list():
            return ("list", *(_normalize(item, owner) for item in value))
    return ("n",) if value == owner.variables["n"] and value is not True else (type(value).__name__, value)


@given(VALUES, VALUES)
def test_values_have_the_same_shape_exactly_if_only_variables_differ(one: Any, two: Any) -> None:
    shapes = [
        shape(plan(change(fields=(field("metadata", None, value),))), owner)
        for value, owner in zip((one, two), SITES, strict=True)
    ]
    is_equal = _normalize(one, SITES[0]) == _normalize(two, SITES[1])
    assert (shapes[0] == shapes[1]) == is_equal


def test_the_kind_of_a_resource_is_part_of_the_shape() -> None:
    def of(kind: str) -> str:
        deleted = change(f"{kind}/office", action=Action.DELETE, fields=(field("ids", ["x_1"], []),))
        return shape(plan(deleted, names={"x_1": f"{kind}/a"}), member("m", kind=kind))

    assert of("IPPolicy") != of("ReservedDomain")


def test_an_approval_granted_by_the_project_changes_the_shape() -> None:
    """Otherwise the approval would not be required from the other members either."""

    def of(granted: bool) -> str:
        return shape(plan(change(), approvals=(Approval("delete", "IPPolicy", 1, "why", granted),)), member("m"))

    assert of(True) != of(False)


def test_a_problem_changes_the_shape() -> None:
    def of(*problems: Problem) -> str:
        return shape(plan(change(), problems=problems), member("acme"))

    def problem(subject: str, text: str = "x", **more: Any) -> Problem:
        return Problem(text, subject=subject, code="a", **more)

    assert of(problem("IPPolicy/acme")) == of(problem("IPPolicy/acme", "another text"))
    others = [of(), of(problem("IPPolicy/x")), of(problem("IPPolicy/x", confined=True)), of(problem("TLSEdge/x"))]
    assert len(set(others)) == len(others)


def test_a_changed_rule_changes_the_shape_and_a_changed_place_does_not() -> None:
    update, owner = plan(change()), member("acme", size=1)
    for name, order in SETTINGS.items():
        if order is not None:
            other = Rules({**RULES.settings, name: 2})
            assert (shape(update, owner, rules=other) != shape(update, owner)) is is_demand(order), name


def test_a_loosened_policy_or_protection_changes_the_shape() -> None:
    update, owner = plan(change("ReservedDomain/a")), member("acme", site="a")
    protected, plain = (manifest(declare("ReservedDomain/a", protect=protect)) for protect in (True, False))
    rule = Rule("p", LANGUAGE.expression("true"), ("no",), Position("policies/a.yaml", 1, 1))
    judged = Rules(RULES.settings, {"p": rule}, protected)
    loosened = [
        Rules(RULES.settings, {}, protected),
        Rules(RULES.settings, {"p": replace(rule, severity=Severity.WARNING)}, protected),
        Rules(RULES.settings, {"p": rule}, plain),
    ]
    assert len({shape(update, owner, rules=rules) for rules in (judged, *loosened)}) == 4


def test_a_variable_with_the_value_of_a_setting_does_not_change_the_shape() -> None:
    update = plan(change())
    assert shape(update, member("acme", size=1)) == shape(update, member("other", size=7))


def test_a_changed_guard_of_the_fleet_changes_the_shape() -> None:
    update, owner = plan(change()), member("acme")
    assert shape_of(update, "web", owner, RULES, ["5", 1]) != shape_of(update, "web", owner, RULES, ["50", 1])


# --- the content of a shape

POLICY_ID, RULE_ID, EDGE_ID, ADDED_ID = (f"{prefix}_{'7' * 20}" for prefix in ("ipp", "pol", "edg", "ipr"))


def whole_plan() -> Plan:
    """A plan with each sort of value, change and finding."""
    values: list[Any] = [
        Hidden("00"),
        Secret("canary", "env:A"),
        Ref(Address("IPPolicy", "office-acme")),
        Ref(Address("IPPolicy", "acme"), "id"),
        Template(("at-acme-", Ref(Address("TLSEdge", "shop"), "host"))),
        JsonTemplate(('{"site": ', Ref(Address("TLSEdge", "shop")), "}")),
        "acme", "acmes", "at acme, not at acme's mall: berlin", f"{POLICY_ID} of {EDGE_ID}", f"by {RULE_ID}", "",
        True, False, None, 5, 6, 2.5, 7.5,
        {"acme": 1, "b": [{"a": "berlin"}], "A": None}, ("acme", 5), [],
        Verdict.WIDENS,
    ]  # fmt: skip
    fields = tuple(field(f"metadata.{place}", value, None) for place, value in enumerate(values))
    changes = (
        change("TLSEdge/shop", id=EDGE_ID, fields=(*fields, field("host", None, "acme", ChangedBy.PLATFORM))),
        change("TLSEdge/acme", action=Action.REPLACE, order=Order.DELETE_FIRST, former=Address("TLSEdge", "old-acme"),
               risks=(Risk.WIDENS_ACCESS, Risk.EXPOSES), protected=True),
        change(f"IPPolicyRule/{ADDED_ID}", id=ADDED_ID, action=Action.DELETE, identity={"cidr": "at acme"}),
        change(f"IPPolicyRule/{ADDED_ID}", id="another"),
        change("IPPolicyRule/office", id="office"),
    )  # fmt: skip
    delivery = Delivery("to_vault", "agents/acme", settings={"mount": "acme", "key": "token"})
    calls = (
        Call("create AgentToken/a", Address("AgentToken", "a"), Verb.CREATE, "/a", deliver={"token": delivery}),
        Call("update AgentToken/b", Address("AgentToken", "acme"), Verb.UPDATE, "/a", overwrites=True,
             deliver={"token": Delivery("to_command", "store"), "id": Delivery("to_file", "acme/id")}),
    )  # fmt: skip
    return plan(
        *changes,
        additions=(change(f"IPPolicyRule/{ADDED_ID}9", id=f"{ADDED_ID}9", action=Action.DELETE),),
        calls=calls,
        names={
            POLICY_ID: "IPPolicy/office-acme",
            RULE_ID: "IPPolicy/acme",
            EDGE_ID: 'TLSEdge "Shop of acme"',
            ADDED_ID: "IPPolicyRule/shop",
        },
        access=(AccessChange("https://acme", Verdict.WIDENS, "no one", "acme", "a", True, (), "d", ("of acme",)),),
        approvals=(
            Approval("update", "*", 3, "why"),
            Approval("delete", "TLSEdge", 1, "why", granted=True, is_optional=True),
        ),
        problems=(
            Problem("text of acme", subject="TLSEdge/shop", code="a", confined=True),
            Problem("text", subject="TLSEdge/acme", code="b", rule="edges", severity=Severity.WARNING),
            Problem("text", code="c"),
        ),
    )  # fmt: skip


def test_the_content_of_a_shape_is_as_reviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members with equal content share an approval. `shape.txt` has the content of a plan with each sort of part."""
    seen: list[Any] = []

    def note(content: Any) -> bytes:
        seen.append(content)
        return canonical(content)

    monkeypatch.setattr(shapes, "canonical", note)
    place = Position("policies/a.yaml", 1, 1)
    tests = (AccessTest(("203.0.113.9",), "https://acme", Expected.DENY, place),)
    owner = member("berlin", site="acme", n=5, more={"list": ["x", 2.5, True, None]}, empty="")
    protected = manifest(declare("TLSEdge/acme", protect=True), declare("TLSEdge/other", protect=True))
    rule = Rule("p", LANGUAGE.expression("true"), ("no",), place)
    rules = Rules(RULES.settings, {"p": rule}, protected, tests=tests)
    literal = [Address("TLSEdge", "shop"), Address("IPPolicy", "acme")]
    digest = shape_of(whole_plan(), "web", owner, rules, ["5%", 1], literal)
    compare_golden(Path(__file__).with_name("shape.txt"), "\n".join([digest, *write_lines(seen[-1])]) + "\n")


def write_lines(content: Any, indent: str = "") -> Iterator[str]:
    """JSON with a list in one line if it is short."""
    text = indent + json.dumps(content, ensure_ascii=False)
    if not isinstance(content, list) or len(text) < 120:
        yield text
    else:
        yield f"{indent}["
        for item in content:
            yield from write_lines(item, f"{indent}  ")
        yield f"{indent}]"
