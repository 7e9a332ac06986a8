"""--target, --exclude and --replace: unknown names are errors, and the output states that the plan is partial."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell

UNMATCHED = "matches nothing that is declared, or owned by this stack"


@pytest.fixture
def applied(shell: Shell, sandbox: Sandbox) -> Shell:
    assert shell("apply", "-y", "--quiet").code == 0
    return shell


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--target", "{}"),
        ("plan", "--exclude", "{}"),
        ("apply", "-y", "--target", "{}"),
        ("drift", "--target", "{}"),
        ("accept", "{}"),
    ],
    ids=lambda words: " ".join(words[:-1]),
)
@pytest.mark.parametrize(
    ("spelt", "remedy"),
    [
        ("TLSEdge/paymnts", "did you mean TLSEdge/payments?"),
        ("tlsedge/payments", "did you mean TLSEdge/payments?"),
        ("TLSEdge", "write TLSEdge/* for all of the kind"),
        ("Nothing/*", "write KIND/NAME as shown in plans, for example TLSEdge/payments"),
    ],
)
def test_an_unknown_name_is_refused_with_a_suggestion(
    applied: Shell, sandbox: Sandbox, words: tuple[str, ...], spelt: str, remedy: str
) -> None:
    sandbox.forget_log()
    result = applied(*(word.format(spelt) for word in words))
    assert result == Output(64, "", f"error: {spelt} {UNMATCHED}; {remedy}\n")
    assert {request["method"] for request in sandbox.log()} == {"GET"}


def test_every_unknown_name_is_reported(applied: Shell) -> None:
    result = applied("plan", "--target", "TLSEdge/payments", "--target", "TLSEdge/a", "--exclude", "*/b")
    assert [line.partition(" matches")[0] for line in result.err.splitlines()] == ["error: TLSEdge/a", "error: */b"]


def test_a_resource_of_the_stack_that_is_no_longer_declared_can_be_selected(applied: Shell) -> None:
    applied.write("manifests/payments.yaml", "kind: IPPolicy\nname: office\nspec: {description: Office}\n")
    result = applied("plan", "--target", "TLSEdge/payments")
    assert (result.code, result.err) == (0, "")
    assert "- TLSEdge/payments" in result.out


def test_a_pattern_for_a_kind_may_match_nothing(applied: Shell) -> None:
    """In a pipeline the pattern may be for resources that are declared later."""
    read = "read 1 of 30 kinds, which the selected resources need\n"
    none = Output(0, "No changes in the selected resources: 0 of 3 resources match the manifests.\n", read)
    assert applied("plan", "--target", "BotUser/*") == none
    assert applied("plan", "--exclude", "BotUser/*").code == 0


@pytest.mark.parametrize(("command", "word"), [("plan", "changes"), ("drift", "drift")])
def test_a_limited_plan_reports_the_number_of_all_resources(applied: Shell, command: str, word: str) -> None:
    counts = "2 of 3 resources match the manifests."
    result = applied(command, "--exclude", "TLSEdge/payments", "--format", "text", "--format", f"markdown={command}.md")
    assert result == Output(0, f"No {word} in the selected resources: {counts}\n", "")
    assert f"**No {word} in the selected resources: {counts}**" in Path(f"{command}.md").read_text()


def test_destroy_warns_of_a_name_that_matches_nothing(applied: Shell) -> None:
    result = applied("destroy", "-y", "--target", "TLSEdge/paymnts")
    assert result.code == 0
    assert "warning: TLSEdge/paymnts matches nothing that is declared, or owned by this stack" in result.err


def test_destroy_of_a_selected_resource_succeeds(applied: Shell) -> None:
    result = applied("destroy", "-y", "--target", "TLSEdge/payments")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Destroyed: 1 deleted.")
    assert "Plan for the selected resources: 0 to create, 0 to update, 0 to replace, 1 to delete." in result.out


def test_a_plan_file_is_applied_after_its_target_was_removed_from_the_manifests(applied: Shell) -> None:
    applied("plan", "--target", "IPPolicy/office", "--out", "plan.json")
    applied.write("manifests/payments.yaml", "kind: IPPolicy\nname: other\n")
    result = applied("apply", "plan.json", "-y")
    assert UNMATCHED not in result.err


def test_a_name_of_a_kind_that_could_not_be_listed_is_accepted(applied: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("GET /bot_users", then="status", status=400, times=0)
    assert UNMATCHED not in applied("plan", "--target", "BotUser/gone").err
    assert UNMATCHED in applied("plan", "--target", "TLSEdge/gone").err


# --- --replace --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("TLSEdge/paymnts",), "TLSEdge/paymnts matches nothing that is declared; did you mean TLSEdge/payments?"),
        (
            ("TLSEdge/*",),
            "TLSEdge/* matches nothing that is declared; did you mean TLSEdge/payments?",
        ),
        (
            ("TLSEdge/payments", "--exclude", "TLSEdge/*"),
            "TLSEdge/payments cannot be replaced, because --target or --exclude leaves it out",
        ),
    ],
)
def test_only_declared_and_selected_resources_can_be_replaced(
    applied: Shell, words: tuple[str, ...], message: str
) -> None:
    assert applied("plan", "--replace", *words) == Output(64, "", f"error: {message}\n")


def test_a_requested_replacement_is_applied_once(applied: Shell, sandbox: Sandbox) -> None:
    before = {edge["id"] for edge in sandbox.get("/edges/tls")["tls_edges"]}
    result = applied("apply", "-y", "--replace", "TLSEdge/payments")
    assert (result.code, result.out.splitlines()[-1]) == (0, "Applied: 1 replaced.")
    after = {edge["id"] for edge in sandbox.get("/edges/tls")["tls_edges"]}
    assert len(before) == len(after)
    assert len(before - after) == 1
    assert applied("plan", "--detailed-exitcode").code == 0


def test_replace_cannot_be_combined_with_a_plan_file(applied: Shell) -> None:
    assert applied("plan", "--replace", "TLSEdge/payments", "--out", "plan.json").code == 0
    refused = applied("apply", "-y", "plan.json", "--replace", "TLSEdge/payments")
    assert refused.code == 64
    assert "--replace cannot be combined with a plan file; pass it to `reconciler plan --out plan.json`" in refused.err
    assert applied("apply", "-y", "plan.json").out.splitlines()[-1] == "Applied: 1 replaced."
    assert applied("apply", "-y", "plan.json").code == 3


def test_destroy_refuses_an_unknown_variable(applied: Shell, sandbox: Sandbox) -> None:
    result = applied("destroy", "-y", "--var", "nope=1")
    assert (result.code, result.out) == (1, "")
    assert "--var nope: unknown variable" in result.err
    assert sandbox.get("/edges/tls")["tls_edges"] != []
