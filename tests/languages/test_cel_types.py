"""Types of expressions: unknown fields and functions, and values that an operator does not accept, with positions."""

from __future__ import annotations

import pytest

from reconciler.languages.cel_types import TypedLanguage

MESSAGES = {
    "Shop": {"name": "string", "open": "bool", "size": "int", "items": "list<Item>", "owner": "Person", "notes": "any"},
    "Item": {"title": "string", "labels": "list<string>"},
    "Person": {"first_name": "string"},
}
LANGUAGE = TypedLanguage(
    MESSAGES, {"shop": "Shop", "shops": "list<Shop>", "now": "timestamp"}, {"near": [("Shop", "list<Shop>")]}
)


def find(text: str, answers: str = "BOOL") -> list[tuple[int, int, str, str]]:
    found = LANGUAGE.find_mistakes(text, answers)
    return [(mistake.line, mistake.column, mistake.text, mistake.remedy) for mistake in found]


@pytest.mark.parametrize(
    "text",
    [
        "shop.open",
        "shop.name == 'a' && shop.size > 3 && shop.size > 2.5",
        "shop.name == null || shop.owner != null",
        "shop.name in [null, 'a']",
        "shop.notes.anything.at[3] == 'all'",
        "shop.items.exists(item, item.title.startsWith('a') && item.labels.size() > 0)",
        "shops.filter(s, s.open).map(s, s.name).join(' ') != ''",
        "near(shop).all(s, near(s).exists(t, t.owner.first_name == s.name))",
        "near(shops[0]).size() < 3",
        "'name' in shop && shop.all(key, key != 'x') && shop['name'] == 'a'",
        "has(shop.owner) && shop == shops[0]",
        "(shop.open ? shop.name : null) == null",
        "(shop.open ? shop.owner : {}) != {}",
        "[shop.items, []][0].size() == 0",
        "{'a': shop}.a.size == 3",
        "shops.exists_one(s, s.size == 3)",
        "now.getDayOfWeek() != 5 && now > timestamp('2020-01-01T00:00:00Z')",
        "shop.name.lowerAscii().split('-')[0].size() + shop.size > 1",
        "shop.?owner.hasValue()",
        "dyn(shop).nothing == 1",
    ],
)
def test_a_right_expression_has_no_mistake(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("shop.nam == ''", (1, 6, "uses the unknown field nam", "did you mean name?")),
        ("shop.items[0].foo == ''", (1, 15, "uses the unknown field foo", "use labels or title")),
        ("has(shop.nam)", (1, 10, "uses the unknown field nam", "did you mean name?")),
        ("shops.all(s,\n  s.opn)", (2, 5, "uses the unknown field opn", "did you mean open?")),
        ("near(shop).map(s, s.owner)[0].name == ''", (1, 31, "uses the unknown field name", "use first_name")),
        ("shops.filter(s, s.open)[0].opn", (1, 28, "uses the unknown field opn", "did you mean open?")),
        ("shop.name.first == ''", (1, 11, "uses the field first of text, which has no fields", "remove it")),
        ("shops.name == ''", (1, 7, "uses the field name of a list, which has no fields", "remove it")),
        ("shop.name.exists(c, c == 'a')", (1, 5, "looks for items in text", "use a list or a map")),
        ("shop.name.nearby()", (1, 11, "calls the unknown function nearby", "did you mean near?")),
        ("neer(shop) == []", (1, 1, "calls the unknown function neer", "did you mean near?")),
        ("near() == []", (1, 1, "calls near with other arguments than it takes", "write near(shop)")),
        ("shp.open", (1, 1, "uses the unknown name shp", "did you mean shop?")),
    ],
)
def test_a_mistake_is_at_its_line_and_column(text: str, mistake: tuple[int, int, str, str]) -> None:
    assert find(text) == [mistake]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("shop.size == 'a'", 11),
        ("shop.size < 'a'", 11),
        ("shop.name + shop.size == ''", 11),
        ("near(shop.name) == []", 5),
        ("near(shops) == []", 5),
        ("shop.name || shop.open", 11),
        ("shop.name in shop.name", 11),
        ("shop.size.startsWith('a')", 21),
        ("shop.items.exists(i, i.title == 3)", 30),
    ],
)
def test_values_of_a_type_that_an_operator_or_function_does_not_accept_are_a_mistake(text: str, column: int) -> None:
    (mistake,) = find(text)
    assert mistake[:2] == (1, column), mistake


def test_an_expression_of_another_type_is_a_mistake() -> None:
    assert find("shop.name") == [(1, 1, "evaluates to text, not to true or false", "compare it with a value")]
    assert find("shop.items") == [(1, 1, "evaluates to a list, not to true or false", "compare it with a value")]
    assert find("shop.notes") == []
    assert find("shop.name", "") == []


def test_several_mistakes_are_in_the_order_of_the_text() -> None:
    assert [mistake[:2] for mistake in find("shop.nam == 'a' &&\nshop.sizee == 3 && shop.opn")] == [
        (1, 6),
        (2, 6),
        (2, 25),
    ]


@pytest.mark.parametrize("text", ["", "shop.", "(" * 400, "shop.name == '" + "x" * 20_000 + "'"])
def test_a_text_that_is_no_expression_has_no_mistake_of_types(text: str) -> None:
    assert find(text) == []
