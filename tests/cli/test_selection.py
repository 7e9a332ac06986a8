"""--target and --exclude: a name that is misspelt is told, and what was looked at is not taken for the whole."""

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
        ("drift", "--accept", "{}"),
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
def test_a_name_that_means_nothing_is_told_with_the_nearest(
    applied: Shell, sandbox: Sandbox, words: tuple[str, ...], spelt: str, remedy: str
) -> None:
    sandbox.forget_log()
    said = applied(*(word.format(spelt) for word in words))
    assert said == Output(64, "", f"error: {spelt} {UNMATCHED}; {remedy}\n")
    assert {each["method"] for each in sandbox.log()} == {"GET"}


def test_every_name_that_means_nothing_is_told(applied: Shell) -> None:
    said = applied("plan", "--target", "TLSEdge/payments", "--target", "TLSEdge/a", "--exclude", "*/b")
    assert [line.partition(" matches")[0] for line in said.err.splitlines()] == ["error: TLSEdge/a", "error: */b"]


def test_what_is_ours_and_no_longer_declared_may_be_named(applied: Shell) -> None:
    applied.write("manifests/payments.yaml", "kind: IPPolicy\nname: office\nspec: {description: Office}\n")
    said = applied("plan", "--target", "TLSEdge/payments")
    assert (said.code, said.err) == (0, "")
    assert "- TLSEdge/payments" in said.out


def test_all_of_a_kind_may_be_none(applied: Shell) -> None:
    """In a pipeline it stands for those to come."""
    none = Output(0, "No changes in the selected resources: 0 of 3 resources match the manifests.\n", "")
    assert applied("plan", "--target", "BotUser/*") == none
    assert applied("plan", "--exclude", "BotUser/*").code == 0


@pytest.mark.parametrize(("command", "word"), [("plan", "changes"), ("drift", "drift")])
def test_a_limited_look_says_how_much_it_was_of(applied: Shell, command: str, word: str) -> None:
    told = "2 of 3 resources match the manifests."
    said = applied(command, "--exclude", "TLSEdge/payments", "--format", "text", "--format", f"markdown={command}.md")
    assert said == Output(0, f"No {word} in the selected resources: {told}\n", "")
    assert f"**No {word} in the selected resources: {told}**" in Path(f"{command}.md").read_text()


def test_what_is_to_be_destroyed_may_be_gone_already(applied: Shell) -> None:
    said = applied("destroy", "-y", "--target", "TLSEdge/paymnts")
    assert said.code == 0
    assert "warning: TLSEdge/paymnts matches nothing that is declared, or owned by this stack" in said.err


def test_what_was_destroyed_is_not_missed_right_after(applied: Shell) -> None:
    said = applied("destroy", "-y", "--target", "TLSEdge/payments")
    assert (said.code, said.out.splitlines()[-1]) == (0, "Destroyed: 1 deleted.")
    assert "Plan for the selected resources: 0 to create, 0 to update, 0 to replace, 1 to delete." in said.out


def test_a_plan_file_needs_no_name_to_be_there_still(applied: Shell) -> None:
    applied("plan", "--target", "IPPolicy/office", "--out", "plan.json")
    applied.write("manifests/payments.yaml", "kind: IPPolicy\nname: other\n")
    said = applied("apply", "plan.json", "-y")
    assert UNMATCHED not in said.err


def test_a_name_of_a_kind_that_could_not_be_listed_may_be_there(applied: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("GET /bot_users", then="status", status=400, times=0)
    assert UNMATCHED not in applied("plan", "--target", "BotUser/gone").err
    assert UNMATCHED in applied("plan", "--target", "TLSEdge/gone").err


# --- --replace --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
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
def test_what_is_to_be_replaced_is_declared_and_selected(applied: Shell, words: tuple[str, ...], told: str) -> None:
    assert applied("plan", "--replace", *words) == Output(64, "", f"error: {told}\n")


def test_a_replacement_that_was_asked_for_happens_once(applied: Shell, sandbox: Sandbox) -> None:
    before = {edge["id"] for edge in sandbox.get("/edges/tls")["tls_edges"]}
    said = applied("apply", "-y", "--replace", "TLSEdge/payments")
    assert (said.code, said.out.splitlines()[-1]) == (0, "Applied: 1 replaced.")
    after = {edge["id"] for edge in sandbox.get("/edges/tls")["tls_edges"]}
    assert len(before) == len(after)
    assert len(before - after) == 1
    assert applied("plan", "--detailed-exitcode").code == 0


def test_what_a_plan_file_replaces_was_decided_when_it_was_made(applied: Shell) -> None:
    assert applied("plan", "--replace", "TLSEdge/payments", "--out", "plan.json").code == 0
    refused = applied("apply", "-y", "plan.json", "--replace", "TLSEdge/payments")
    assert refused.code == 64
    assert "--replace cannot be combined with a plan file; pass it to `reconciler plan --out plan.json`" in refused.err
    assert applied("apply", "-y", "plan.json").out.splitlines()[-1] == "Applied: 1 replaced."
    assert applied("apply", "-y", "plan.json").code == 3


def test_destroy_knows_which_variables_there_are(applied: Shell, sandbox: Sandbox) -> None:
    said = applied("destroy", "-y", "--var", "nope=1")
    assert (said.code, said.out) == (1, "")
    assert "--var nope: unknown variable" in said.err
    assert sandbox.get("/edges/tls")["tls_edges"] != []
