"""A plan and a run whose texts are all longer than their room, in every format: where each is cut.

A letter that is repeated stands with its number in the files: `a×99` is 99 letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, ChangedBy, FieldChange, Reason, Risk
from reconciler.model.fleet import Pause, RunState, RunVerb, Shape, TaskState, Wave
from reconciler.model.health import Actor, Health, HealthRow, State
from reconciler.model.history import CheckedHealth
from reconciler.model.manifest import Delivery
from reconciler.model.plan import Approval, ApprovalItem, Base, Call, Forecast, Plan, Verb
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.rule_change import RuleChange, RuleRisk
from reconciler.rendering.fleet import junit
from reconciler.rendering.fleet import markdown as fleet_markdown
from reconciler.rendering.fleet import text as fleet_text
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.rendering.plan import access_drift, ci_annotations, findings, health_section, sarif
from reconciler.rendering.plan.markdown import Cover, render_changes, render_markdown
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.overview_markdown import render_overview
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.wire import plan_json
from tests.rendering.fleets import APPLY, ENDED, JUDGED, NOON, fleet, task
from tests.rendering.test_text import compare

THIS, DRIFT = Cause.THIS_CHANGE, Cause.DRIFT
EDGE, GONE, CREDENTIAL = (
    Address("TLSEdge", "e" * 250),
    Address("Kind" + "k" * 70, "g"),
    Address("TunnelCredential", "c"),
)
ADDED = Address("IPPolicyRule", "r" * 250)
LINES = "".join(f"{number}{'l' * 450}\n" for number in range(45))
RUN_THIS = Delivery("to_command", "d", settings={"run": ["d" * 450, "--last"], "check": ["q" * 450]})


def at(line: int) -> Position:
    return Position("p" * 250, line, 1)


def fail(name: str) -> AccessResult:
    return AccessResult(name, AccessStatus.FAILED, Expected.DENY, Expected.ALLOW, "everyone", at(4))


def make_opening(letter: str, verdict: Verdict, *, cause: Cause | None, is_certain: bool = True) -> AccessChange:
    """An entry point of which everything is long; four are the same but for their names."""
    states = letter * 450, f"{letter.upper()}{letter * 450}"
    causes = str(EDGE), str(GONE), str(CREDENTIAL), str(ADDED), "IPPolicy/last"
    example = f"`{letter * 450}`"
    depends = () if is_certain else (letter * 450,)
    return AccessChange(letter * 450, verdict, *states, example, is_certain, causes, letter, depends, cause)


ACCESS = (
    make_opening("w", Verdict.WIDENS, cause=THIS),
    *(replace(make_opening("w", Verdict.WIDENS, cause=THIS), entry_point=f"{place}{'w' * 200}") for place in range(5)),
    make_opening("x", Verdict.LOCKS_OUT, cause=DRIFT, is_certain=False),
    replace(make_opening("z", Verdict.NARROWS, cause=THIS), after="z" * 450),
)
LONG = Plan(
    "s" * 150,
    rule_changes=(RuleChange(RuleRisk.LOOSENS, "guards", "guards.x", "v" * 500, "u" * 500, "d", at(1)),),
    access=ACCESS,
    changes=(
        Change(
            EDGE,
            Action.UPDATE,
            Reason.FIELDS,
            id="i" * 30,
            risks=(Risk.WIDENS_ACCESS,),
            position=at(2),
            fields=(
                FieldChange("f" * 450, "o" * 450 + "1", "o" * 450 + "2", ChangedBy.GIT, cause=THIS),
                FieldChange("lines", LINES, LINES.replace("l1", "l2").replace("1l", "1m"), ChangedBy.BOTH, cause=DRIFT),
                FieldChange("new", None, LINES, ChangedBy.GIT, cause=THIS),
            ),
            cause=THIS,
        ),
        Change(GONE, Action.DELETE, Reason.REMOVED, id="rd_1", risks=(Risk.IRREVERSIBLE,), cause=THIS),
        Change(
            Address("BotUser", "b"),
            Action.MOVE,
            Reason.RENAMED,
            id="bot_1",
            former=Address("BotUser", "o" * 250),
            risks=(Risk.ISSUES_CREDENTIAL, Risk.INTERRUPTS_TRAFFIC),
            cause=DRIFT,
        ),
        Change(CREDENTIAL, Action.CREATE, Reason.DECLARED, risks=(Risk.RUNS_COMMAND,), cause=THIS),
    ),
    additions=(
        Change(
            ADDED,
            Action.DELETE,
            Reason.ADDED,
            id="ipr_1",
            risks=(Risk.ADDED,),
            parent=Address("IPPolicy", "q" * 250),
            fields=(FieldChange("cidr", "y" * 450, None, ChangedBy.PLATFORM, cause=THIS),),
            cause=THIS,
        ),
    ),
    calls=(
        Call("1", EDGE, Verb.UPDATE, "/" + "h" * 59),
        Call("2", CREDENTIAL, Verb.CREATE, "/" + "h" * 99, needs=("1",), deliver={"token": RUN_THIS}),
        Call("3", GONE, Verb.DELETE, "/short", needs=("1", "2")),
    ),
    problems=(
        Problem("a" * 450, "b" * 450, "IPPolicy/a", at(3), Severity.WARNING, code="retired-kind"),
        Problem("n" * 450, severity=Severity.NOTE, code="unused-approval"),
    ),
    approvals=(
        Approval("delete", "ReservedDomain", 1, "y" * 350, items=(ApprovalItem(f"BotUser/{'t' * 250}", "", "aa"),)),
        Approval("account", "*", 1, "z" * 350),
        Approval(
            "widens_access",
            "*",
            4,
            "widens access",
            items=tuple(ApprovalItem(f"{place}{'w' * 200}", "", "") for place in range(4)),
        ),
    ),
    targets=("T" * 350,),
    excludes=("U" * 350,),
    unmanaged=tuple(("K" * 70 + f"{place:02}", "id") for place in range(42)),
    forecast=Forecast(3, 0.0),
    base=Base("m" * 150, "0123456789", withdrawn=(Change(EDGE, Action.CREATE, Reason.DECLARED),)),
    commit="0123456789abcdef",
    created=NOON,
    account="A" * 250,
    environment="E" * 150,
    health=(
        HealthRow(f"TLSEdge/{'h' * 250}", "", Health(State.DEGRADED, "r" * 450, "a" * 450, Actor.YOU)),
        HealthRow("TLSEdge/x", "", Health(State.PROGRESSING, "r" * 450)),
        HealthRow("TLSEdge/y", "", Health(State.UNKNOWN, "r" * 450)),
    ),
    access_tests=(fail("t" * 250),),
)
BEHIND = replace(LONG, base=Base("m" * 150, "0123456789", problems=(replace(LONG.problems[0], subject="S" * 450),)))
OTHER = replace(LONG, environment="F" * 150, targets=("V" * 350,), excludes=(), access=ACCESS[1:], base=None)


def show_runs(page: str) -> str:
    """Each run of ten letters or more as the letter and the number."""
    return re.sub(r"([A-Za-z])\1{9,}", lambda run: f"{run[1]}×{len(run[0])}", page)


def annotate(plan: Plan, flavour: Flavour) -> str:
    found = findings.list_findings(plan, flavour=flavour)
    log = sarif.render_sarif(found, version="1", fallback="a.yaml")
    cut = [line for line in log.splitlines() if '"text": ' in line and "\\u2026" in line]
    report = ci_annotations.render_gitlab(found, fallback="a.yaml")
    described = [line for line in report.splitlines() if '"description": ' in line and "\\u2026" in line]
    return "".join(f"{line}\n" for line in [*ci_annotations.render_github(found).splitlines(), *cut, *described])


PAGES: dict[str, Callable[[], str]] = {
    "plan.md": lambda: render_markdown(LONG, Cover("0123", 120, 9)),
    "plan-behind.md": lambda: render_markdown(BEHIND).partition("### Approvals")[0],
    "drift.md": lambda: render_markdown(LONG, flavour=Flavour.DRIFT).partition("### ")[0],
    "changes.md": lambda: render_changes(LONG, limit=9_000),
    "overview.md": lambda: render_overview([LONG, OTHER], ["N" * 200]).partition("### Changes by this branch")[0],
    "plan.github": lambda: annotate(LONG, Flavour.PLAN),
    "drift.github": lambda: annotate(LONG, Flavour.DRIFT),
}


@pytest.mark.parametrize("name", PAGES)
def test_long_texts_of_a_plan_are_cut(name: str) -> None:
    compare(f"long/{name}", show_runs(PAGES[name]()))


# --- a run over a fleet

SHAPE, OTHER_SHAPE = "0" * 12, "1" * 12


def build_run(verb: RunVerb) -> RollUp:
    """A run with long names of members, projects and waves, and long reasons."""
    needs = (Approval("delete", "BotUser", 1, "y" * 450),)
    change = replace(LONG.changes[0], address=Address("TLSEdge", "e" * 100))
    plan = replace(LONG, approvals=needs, base=None, health=None, changes=(change,), additions=(), calls=())
    exemplars = {
        SHAPE: Shape(SHAPE, "m" * 150, "p" * 100, plan_json.write_plan(plan)),
        OTHER_SHAPE: Shape(OTHER_SHAPE, "n" * 150, "q" * 100, plan_json.write_plan(Plan("base"))),
    }
    health = Health(State.DEGRADED, "r" * 450, "a" * 450, Actor.YOU)
    checked = CheckedHealth(1, (HealthRow("TLSEdge/" + "h" * 80, "", health),))
    tasks = [
        replace(task(1, digest=SHAPE), member="m" * 150, project="p" * 100, counts={"update": 1}, health=checked),
        replace(task(2, digest=OTHER_SHAPE), member="n" * 150, project="q" * 100, exit_code=exit_codes.DEGRADED),
        replace(task(3, TaskState.FAILED), member="f" * 150, reason="R" * 450),
        replace(task(4, TaskState.RUNNING, wave=1), member="s" * 150, alive=NOON - 400),
    ]
    waves = Wave("w" * 70), Wave("v" * 70, approve=True)
    run = {RunVerb.PLAN: ENDED, RunVerb.APPLY: APPLY, RunVerb.DRIFT: JUDGED}[verb]
    stopped = RunState.FAILED if verb is RunVerb.PLAN else RunState.OPEN
    reason = "S" * 450 if verb is RunVerb.PLAN else ""
    run = replace(run, fleet="F" * 150, actor="a" * 150, waves=waves, state=stopped, reason=reason)
    pause = Pause("shops", NOON, None, "P" * 450, "b" * 50) if verb is RunVerb.APPLY else None
    return build_rollup(fleet(0), run, tasks, exemplars, NOON, pause)


FLEET_PAGES: dict[str, Callable[[RollUp], str]] = {
    "md": lambda seen: fleet_markdown.render_markdown(seen, limit=20_000),
    "txt": lambda seen: (
        fleet_text.render_text(seen, width=90) + "\n=====\n\n" + fleet_text.render_status(seen, width=40)
    ),
    "xml": junit.render_junit,
}


@pytest.mark.parametrize("verb", RunVerb)
@pytest.mark.parametrize("form", FLEET_PAGES)
def test_long_texts_of_a_run_are_cut(form: str, verb: RunVerb) -> None:
    compare(f"long/fleet-{verb}.{form}", show_runs(FLEET_PAGES[form](build_run(verb))))


# --- titles


def test_the_title_of_a_notice_has_its_room() -> None:
    """The lines about open entry points, degraded objects and failed access tests, for a pull request or an issue."""
    titles = []
    for number in (60, 61, 62, 150, 151, 152, 167, 168, 169, 170, 180):
        entry = replace(
            make_opening("o", Verdict.WIDENS, cause=None), entry_point="o" * number, before="b", after="everyone"
        )
        ill = HealthRow("", "h" * number, Health(State.DEGRADED, ""))
        titles += [
            access_drift.headline(build_outline(Plan("prod", access=(entry,)))),
            health_section.headline([ill]),
            access_drift.name_failed_test([fail("t" * number)]),
        ]
    compare("long/titles.txt", "".join(f"{len(title)}: {show_runs(title)}\n" for title in titles))
