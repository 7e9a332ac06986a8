"""What the diff of `fmt --check` hides: every line of a secret, in each way in which YAML can write one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.languages.yaml import reader as yaml
from reconciler.project.documents.layout_changes import list_changes

BLANKS = ("", " ", "   ")
VALUES = (
    "value: |\n    t0ken1\n{blank}\n{blank}\n    t0ken2",
    "value: |\n{blank}\n    t0ken1\n    # t0ken2",
    "value: |-\n    t0ken1\n{blank}\n      t0ken2",
    "value: |+\n    t0ken1\n{blank}\n    t0ken2\n{blank}",
    "value: |1\n   t0ken1\n   t0ken2",
    "value: |2\n      t0ken1\n{blank}\n    t0ken2",
    "value: >\n    t0ken1\n{blank}\n    t0ken2",
    "value: # a comment\n    t0ken1\n{blank}\n    t0ken2",
    "value: t0ken1\n    t0ken2\n{blank}\n   t0ken3",
    "value:\n    t0ken1\n{blank}\n    t0ken2",
    "value:\n    |\n    t0ken1\n{blank}\n    t0ken2",
    "value:\n    >\n   t0ken1\n{blank}\n   t0ken2",
    "value: !!str\n    t0ken1\n{blank}\n    t0ken2",
    "value: &a\n    't0ken1\n{blank}\n    t0ken2'",
    "value: 't0ken1'",
    'value: "t0ken1\n{blank}\n    t0ken2"',
    'value: "t0ken1\n{blank}\n  t0ken2"',
    'value: "t0ken1\nt0ken2\n{blank}\nt0ken3"',
    'value: "t0ken1\\\n\tt0ken2"',
    "value:\n    't0ken1\n{blank}\n    t0ken2'",
    "? value\n  : t0ken1\n    t0ken2",
    "value: |\n    t0ken1\n{blank}\n   # t0ken2",  # perhaps the former secret
    "value: t0ken1\n{blank}\n    # t0ken2",
    "value: 't0ken1'\n{blank}\n{blank}\n   # t0ken2\n{blank}\n   # t0ken3",
)
FLOWS = (
    '{{value: "t0ken1\n{blank}\n  t0ken2"}}',
    '{{value: "t0ken1\n{blank}\nt0ken2", description: t0ken3}}',
    "{{\n  description: a,\n  value: t0ken1\n  t0ken2\n{blank}\n  }}",
    "{{value:\n  't0ken1\n  t0ken2'}}",
)
IN_LISTS = (
    "t0ken1\n    t0ken2",
    "|\n   t0ken1\n{blank}\n   t0ken2",
    "\n    |\n    t0ken1\n{blank}\n    t0ken2",
    "\n    't0ken1\n{blank}\n    t0ken2'",
    "- t0ken1\n      t0ken2\n    - t0ken3",
    "user: a\n    password: 't0ken1\n{blank}\n    t0ken2'",
)
POLICY = "on_http_request:\n  - actions:\n      - type: basic-auth\n{blank}\n        config: {{credentials: [t0ken1]}}"


def write_texts(blank: str) -> Iterator[str]:
    head, tail = "kind: Secret\nname: a\n", "description: shown\n"
    for value in VALUES:
        yield f"{head}spec:\n  name: b\n  {value.format(blank=blank)}\n  {tail}"
        yield f"{head}spec:\n  name: b\n  {value.format(blank=blank)}\n---\n{tail}"
    for flow in FLOWS:
        yield f"{head}spec: {flow.format(blank=blank)}\n{tail}"
    for item in IN_LISTS:
        yield f"{head}spec:\n  passwords:\n  - {item.format(blank=blank)}\n  {tail}"
    policy = POLICY.format(blank=blank)
    yield f"{head}spec:\n  policy: |\n    {policy.replace(chr(10), chr(10) + '    ')}\n  {tail}"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("blank", BLANKS)
def test_no_line_of_a_secret_is_shown_and_the_next_field_is(blank: str, line_end: str) -> None:
    for text in write_texts(blank):
        assert yaml.read(text.encode(), "a.yaml").problems == []
        for written in (text.replace("\n", line_end), text.replace("\n", line_end).removesuffix(line_end)):
            output = "\n".join(list_changes("a.yaml", written, "x"))
            assert ("t0ken" in output, "description: shown" in output) == (False, True), written


def test_nothing_is_shown_of_a_file_with_line_breaks_that_only_yaml_has() -> None:
    text = 'kind: Secret\nname: a\nspec:\n  description: "a\rb"\n  value: t0ken1\n'
    assert yaml.read(text.encode(), "a.yaml").problems == []
    assert [line.strip("- ") for line in list_changes("a.yaml", text, "")][1:6] == ["(hidden)"] * 5


def test_a_short_secret_hides_only_its_own_line() -> None:
    text = "kind: Secret\nname: a\nspec:\n  value: abc\n  description: abc\n"
    assert "-   description: abc" in list(list_changes("a.yaml", text, "x"))
