"""The values of options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.commands import apply, plan
from reconciler.cli.commands.fleet import apply as fleet_apply
from reconciler.cli.terminal.options import Options

ALLOW = [
    (apply.command, "delete:ReservedDomain", ("delete", "ReservedDomain")),
    (fleet_apply.command, "deletes", "deletes"),
]


def parse(command: click.Command, *words: str) -> object:
    """The value of `--allow`."""
    (option,) = (option for option in command.params if "--allow" in option.opts)
    return option.process_value(click.Context(command), words)


@pytest.mark.parametrize(("command", "rule", "key"), ALLOW, ids=["apply", "fleet apply"])
@given(counts=st.lists(st.lists(st.integers(1, 999), min_size=1, max_size=3), min_size=1, max_size=3))
def test_repeated_approvals_add_up(
    command: click.Command, rule: str, key: object, counts: Sequence[Sequence[int]]
) -> None:
    words = [",".join(f"{rule}={count}" for count in part) for part in counts]
    assert parse(command, *words) == {key: sum(map(sum, counts))}


@pytest.mark.parametrize(("command", "rule", "key"), ALLOW, ids=["apply", "fleet apply"])
def test_an_approval_of_nothing_is_refused(command: click.Command, rule: str, key: object) -> None:
    with pytest.raises(click.BadParameter, match=f"'{rule}=0' has a count of zero; use at least 1, as in {rule}=1"):
        parse(command, f"{rule}=0")


KIND, ALL = "BotUser", "*"
SCOPES = {
    "delete": (KIND, ALL, "BotUser/robot"),
    "delete-protected": (KIND,),
    "create": (KIND,),
    "adopt": (KIND,),
    "overwrite": (KIND,),
    "update": (ALL,),
    "empty": (ALL,),
    "account": (ALL,),
    "widens_access": (KIND, ALL),
    "locks_out": (KIND, ALL),
    "exposes": (KIND, ALL),
    "irreversible": (KIND,),
    "leaves_dns_record": (KIND,),
    "interrupts_traffic": (KIND,),
    "runs_command": (KIND,),
    "issues_credential": (KIND,),
    "disables_agent": (KIND,),
}
"""What each rule may be approved for."""


def test_a_rule_is_approved_for_its_scopes_only() -> None:
    for rule, scopes in SCOPES.items():
        for scope in (KIND, ALL, "BotUser/robot"):
            if scope in scopes:
                assert parse(apply.command, f"{rule}:{scope}=2") == {(rule, scope): 2}
            else:
                with pytest.raises(click.BadParameter, match=r"needs a kind instead of|cannot be limited to"):
                    parse(apply.command, f"{rule}:{scope}=2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("delet:BotUser=1", "names an unknown rule; use one of delete, delete-protected"),
        ("delete:BotUsr=1", "names an unknown kind; did you mean delete:BotUser=1?"),
        ("delete:BotUser", "is not RULE:KIND=N"),
        ("delete:BotUser=x", "is not RULE:KIND=N"),
        ("delete:BotUser=1234567890", "is not RULE:KIND=N"),
        ("loosens_rule:guards.max_delete=1", "names an unknown rule of a project"),
    ],
)
def test_an_invalid_approval_is_refused_with_a_remedy(text: str, problem: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        parse(apply.command, text)
    assert problem in refused.value.message


@pytest.mark.parametrize(
    ("is_found", "path", "expected"),
    [(True, "a.yaml", "../a.yaml"), (False, "a.yaml", "a.yaml"), (True, "/srv/a.yaml", "/srv/a.yaml")],
)
def test_a_path_is_relative_to_the_project_that_was_found(is_found: bool, path: str, expected: str) -> None:
    assert Options(project=Path("shop"), is_found=is_found).to_project_path(path) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("2m", 120), ("12h", 43_200), ("1d", 86_400), ("2w", 1_209_600), ("0s", 0), ("999999s", 999_999),
     ("1", None), ("h", None), ("-1h", None), ("1h30m", None), ("1 h", None), ("1000000s", None), ("1y", None)],
)  # fmt: skip
def test_an_age_is_a_number_and_a_unit(text: str, seconds: int | None) -> None:
    (option,) = (option for option in plan.command.params if "--max-age" in option.opts)
    if seconds is None:
        with pytest.raises(click.BadParameter, match="use a number and a unit"):
            option.process_value(click.Context(plan.command), text)
    else:
        assert option.process_value(click.Context(plan.command), text) == seconds


FORMATS: Sequence[tuple[Sequence[str], object]] = [
    ((), [("text", "")]),
    (("json",), [("json", "")]),
    (("json=x.json", "text"), [("json", "x.json"), ("text", "")]),
    (("html=a=b.html",), [("html", "a=b.html")]),
    (("json", "text"), "only one format can use standard output"),
    (("pdf",), "unknown format 'pdf'; use one of text, markdown, html, json, sarif, github, gitlab, junit"),
    (("json=-",), "'-' is not supported; use json without a file for standard output"),
    (("json=",), "'json=' has no file name; use json=FILE, or json for standard output"),
    (("json=x", "html=./x"), "x is named twice"),
    (("json=x", "html=x"), "x is named twice"),
]


@pytest.mark.parametrize(("words", "expected"), FORMATS)
def test_a_format_is_written_to_its_file_or_to_standard_output(words: Sequence[str], expected: object) -> None:
    (option,) = (option for option in plan.command.params if "--format" in option.opts)
    if isinstance(expected, list):
        assert option.process_value(click.Context(plan.command), words) == expected
        return
    with pytest.raises(click.UsageError) as refused:
        option.process_value(click.Context(plan.command), words)
    assert str(expected) in refused.value.message
