"""Commands on runs that are stored already: what a person is asked, what a run waits for, and which runs are named.

Nothing here plans: the runs are written to the store, and an apply ends at its question.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from msgspec.structs import replace

from reconciler.cli.commands.fleet import plan as plan_command
from reconciler.cli.fleets import commands, session
from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.fleets.progress import report_progress
from reconciler.cli.terminal import output
from reconciler.fleet.coordinator import FleetProgress
from reconciler.model.fleet import Run, RunState, RunVerb, Shape, TaskRecord, TaskState
from reconciler.project.fleets.load import load_fleet
from reconciler.rendering.wire import plan_json
from reconciler.store.fleets.records import open_fleet_records
from tests.fleet.fleets import member, write_fleet
from tests.fleet.states import FleetProject
from tests.harness.outcomes import run_row
from tests.harness.project import Output
from tests.rendering.fleets import NOON, OPENED, PLAIN, RUN, SHAPES, WIDE, plan, task

WIDER = "f0e2d2c3b4a5"  # as WIDE: needs an approval, and begins with the same letter
NAMES = [f"shop-{place}" for place in range(1, 9)]
MEMBERS = [member(name, labels={"region": "eu" if place % 2 else "us"}) for place, name in enumerate(NAMES, 1)]
ENDED = replace(RUN, state=RunState.SUCCEEDED, ended=NOON + 60)
ALL = {**SHAPES, WIDER: Shape(WIDER, "shop-7", "base", plan_json.write_plan(plan("shop-7", is_wide=True)))}


class Fleet(FleetProject):
    """A fleet of eight members and its store."""

    def put(self, run: Run, tasks: Iterable[TaskRecord] = (), *shapes: str) -> str:
        """Stores a run with its tasks and shapes. Returns its id."""

        async def write() -> None:
            async with open_fleet_records(str(self.root / "state/fleet.db")) as records:
                await records.create_run(run, [replace(task, run=run.id) for task in tasks])
                for digest in shapes:
                    await records.save_shape(run.fleet, ALL[digest])

        (self.root / "state").mkdir(exist_ok=True)
        asyncio.run(write())
        return run.id

    def row(self, *words: str) -> Output:
        """Runs a command; the last word may be an answer at the terminal: `(no)`."""
        return run_row(["fleet", *words], self)


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fleet:
    write_fleet(tmp_path, MEMBERS, projects={"base": ()})
    return Fleet(tmp_path, capsys)


def make_plans() -> list[TaskRecord]:
    """Plans of three plain members, of two shapes that need an approval, one without changes and one that failed."""
    unchanged = replace(task(6), shape="", counts={}, changes={})
    return [*map(task, (1, 2, 3)), task(4, digest=WIDE), task(5, digest=WIDER), unchanged, task(7, TaskState.FAILED)]


def find_question(result: Output) -> str:
    """The question at the terminal."""
    (found,) = re.findall(r"^Apply .*\?.*$", result.err, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize(
    ("flags", "question"),
    [
        ("", "Apply 1 shape to 3 members? 2 shapes are not approved and are left out."),
        (f"--approve {WIDE}", "Apply 2 shapes to 4 members? 1 shape is not approved and is left out."),
        (f"--approve {WIDE[:4]} --approve {WIDER[:4]}", "Apply 3 shapes to 5 members?"),
    ],
)
def test_the_question_is_about_the_approved_shapes_and_their_members(fleet: Fleet, flags: str, question: str) -> None:
    run = fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    result = fleet.row("apply", run, *flags.split(), "(no)")
    assert (result.code, find_question(result)) == (1, question)
    assert result.err.endswith(f"to apply this plan later: reconciler fleet apply {run}\n")
    assert len(fleet.list_runs()) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f0e", "f0e is not a shape of the run"),
        ("f0e1d2c3b4a6", "f0e1d2c3b4a6 is not a shape of the run"),
        ("abcd", "abcd is not a shape of the run"),
    ],
)
def test_a_shape_is_named_by_at_least_four_digits_that_only_it_begins_with(
    fleet: Fleet, text: str, problem: str
) -> None:
    run = fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    known = ", ".join(sorted((PLAIN, WIDE, WIDER)))
    refused = fleet.row("apply", run, "-y", "--approve", text)
    assert (refused.code, refused.err) == (64, f"error: {problem}; its shapes are {known}\n")


def test_an_ambiguous_shape_is_refused(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    alias = f"{WIDE[:-1]}6"
    monkeypatch.setitem(ALL, alias, replace(ALL[WIDE], digest=alias))
    run = fleet.put(ENDED, [task(4, digest=WIDE), task(5, digest=alias)], WIDE, alias)
    refused = fleet.row("apply", run, "-y", "--approve", WIDE[:6])
    assert (refused.code, refused.err) == (64, f"error: {WIDE[:6]} is ambiguous; its shapes are {WIDE}, {alias}\n")


def test_each_shape_is_named_if_all_of_them_need_an_approval(fleet: Fleet) -> None:
    run = fleet.put(ENDED, [task(4, digest=WIDE), task(5, digest=WIDER)], WIDE, WIDER)
    flags = f"--approve {WIDE} --approve {WIDER}"
    assert fleet.row("apply", run, "-y", "-q") == Output(
        4,
        "",
        f"error: nothing was changed: approval required: pass {flags}\n"
        f"to apply this plan: reconciler fleet apply {run} {flags}\n",
    )


@pytest.mark.parametrize(("state", "code"), [(TaskState.SUCCEEDED, 0), (TaskState.FAILED, 6), (TaskState.BLOCKED, 4)])
def test_an_apply_without_changes_exits_as_its_plan(fleet: Fleet, state: TaskState, code: int) -> None:
    unchanged = replace(task(6), shape="", counts={}, changes={})
    run = fleet.put(ENDED, [unchanged, replace(task(7, state), shape="", counts={}, changes={})])
    result = fleet.row("apply", run, "-y")
    assert (result.code, result.out.splitlines()[-1]) == (code, "Nothing to apply.")
    assert fleet.row("apply", run, "-y", "-q").out == ""


@pytest.mark.parametrize(
    ("select", "changed"), [("", 5), ("name=shop-1", 1), ("name=shop-1 name=shop-2", 2), ("region=eu name=shop-*", 3),
                            ("region=us region=eu", 5), ("region=us name=shop-3", 0)],
)  # fmt: skip
def test_guards_count_the_selected_members(fleet: Fleet, select: str, changed: int) -> None:
    write_fleet(fleet.root, MEMBERS, projects={"base": ()}, guards={"max_changed": 0})
    run = fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    flags = [f"--select={text}" for text in select.split()]
    approvals = ["--approve", WIDE, "--approve", WIDER]
    result = fleet.row("apply", run, "-q", *flags, *approvals, "(no)")
    if changed:
        members = "1 member" if changed == 1 else f"{changed} members"
        assert result.code == 4
        assert f"blocked: {members} would change, and guards.max_changed allows 0\n" in result.err
        command = f"reconciler fleet apply {run} {' '.join(approvals)} --allow members={changed}\n"
        assert result.err.endswith(f"to apply these plans: {command}")
    assert fleet.row("apply", run, "-q", *flags, *approvals, "--allow", "members=5", "(no)").code in (1, 64)


def test_an_open_apply_of_the_plan_is_in_the_way_of_its_members_only(fleet: Fleet) -> None:
    run = fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    apply = replace(RUN, id="20261123-130000-c3d4", verb=RunVerb.APPLY, reviewed=run)
    fleet.put(apply, [task(1), *(task(place, TaskState.WAITING) for place in (2, 3, 4, 5))])
    refused = fleet.row("apply", run, "(no)")
    left = "4 members (shop-2, shop-3, shop-4, …)"
    assert (refused.code, refused.err.splitlines()) == (
        64,
        [
            f"error: nothing was changed: apply {apply.id} of this plan has not ended for {left}",
            f"to continue it: reconciler fleet resume {apply.id}",
        ],
    )
    assert "for 1 member (shop-2)" in fleet.row("apply", run, "--select", "name=shop-2", "(no)").err
    assert find_question(fleet.row("apply", run, "--select", "name=shop-1", "(no)")).startswith("Apply 1 shape")


def test_a_wave_that_does_not_exist_does_not_end_the_pause(fleet: Fleet) -> None:
    apply = replace(RUN, verb=RunVerb.APPLY, waves=load_fleet(fleet.root).waves)
    fleet.put(apply, [task(1, TaskState.WAITING)])
    assert fleet.row("pause", "-q") == Output(0, "", "")
    refused = fleet.row("resume", "--approve-wave", "tail")
    assert (refused.code, refused.err) == (64, "error: --approve-wave: there is no wave tail; the waves are all\n")
    assert fleet.is_paused


@pytest.mark.parametrize("quiet", [True, False])
def test_a_resume_ends_the_pause_although_no_run_is_open(fleet: Fleet, quiet: bool) -> None:
    fleet.put(ENDED, [task(1)], PLAIN)
    assert fleet.row("pause", "-q").code == 0
    ended = fleet.row("resume", RUN.id, *(["-q"] if quiet else []))
    nothing = Output(0, f"Nothing to continue: run {RUN.id} has ended.\n", "The pause of fleet shops ended.\n")
    assert (ended, fleet.is_paused) == (Output(0, "", "") if quiet else nothing, False)


@pytest.mark.parametrize(("words", "approved"), [((), ("canary",)), (("--approve-wave", "all"), ("canary", "all"))])
def test_a_resume_adds_the_waves_that_it_approves(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], approved: tuple[str, ...]
) -> None:
    waves = load_fleet(fleet.root).waves
    fleet.put(replace(RUN, verb=RunVerb.APPLY, waves=waves, approved_waves=("canary",)), [task(1, TaskState.WAITING)])
    resumed: list[tuple[str, ...]] = []

    async def go_on(_session: object, _records: object, run: Run, *, wait: bool) -> int:
        resumed.append(run.approved_waves)
        return int(wait)

    monkeypatch.setattr(commands, "go_on", go_on)
    assert [fleet.row("resume", *words).code, fleet.row("resume", *words, "--no-wait").code] == [1, 0]
    assert [{*waves} for waves in resumed] == [{*approved}] * 2


def test_a_pause_names_who_paused_the_fleet_until_when_and_why(fleet: Fleet) -> None:
    fleet.put(RUN, [task(1, TaskState.WAITING)])
    fleet.environ |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/i", "GITHUB_ACTOR": "octocat"}
    assert fleet.row("pause", "--until", "2100-01-01T00:00Z", "--reason", "incident 7").code == 0
    fleet.environ.clear()
    status = " ".join(fleet.row("status").out.split())
    assert re.search(
        r"the fleet is paused since \S+ \S+ UTC by octocat, until 2100-01-01 00:00 UTC: incident 7", status
    )
    assert fleet.row("pause", "--until", "0s").code == 64  # it would be over at once


@pytest.mark.parametrize(
    ("words", "others"), [([], 5), (["--runs", "0"], 0), (["--runs", "1"], 1), (["--runs", "9"], 7)]
)
def test_the_status_lists_that_many_other_runs_the_newest_first(fleet: Fleet, words: list[str], others: int) -> None:
    ids = [
        fleet.put(replace(ENDED, id=f"2026112{day}-120000-a1b2", created=NOON + day, ended=NOON + day))
        for day in range(8)
    ]
    newest = fleet.row("status", *words)
    listed = re.findall(r"^  (\S+)  plan   succeeded  octocat$", newest.out, re.MULTILINE)
    assert (f"run {ids[-1]}" in newest.out, listed) == (True, ids[-2::-1][:others])
    older = fleet.row("status", ids[0], *words)
    assert re.findall(r"^  (\S+)  plan ", older.out, re.MULTILINE) == ids[:0:-1][:others]


def test_the_plan_of_a_shape_is_shown_as_what_it_is(fleet: Fleet) -> None:
    planned = fleet.put(ENDED, [task(4, digest=WIDE)], WIDE)
    checked = replace(ENDED, id="20261123-140000-d4e5", verb=RunVerb.DRIFT)
    fleet.put(checked, [replace(task(3, digest=OPENED), shape=OPENED)], OPENED)
    assert "Plan: 1 to create" in fleet.row("report", planned, "--shape", WIDE).out
    drifted = fleet.row("report", checked.id, "--shape", OPENED).out
    assert "Drift: 1 resource added on the platform." in drifted
    both = fleet.row("report", planned, "--shape", WIDE, "--format", "json=x.json", "--format", "junit=x.xml")
    assert (both.code, list(fleet.root.glob("x.*"))) == (64, [])


@pytest.mark.parametrize("where", ["--file=fleet.yaml", "--file=.", "above"])
def test_the_fleet_file_is_named_or_found_above(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    fleet.put(ENDED, [task(1)], PLAIN)
    words = [where] if where != "above" else []
    if where == "above":
        (fleet.root / "base/deep").mkdir()
        monkeypatch.setattr(fleet, "root", fleet.root / "base/deep")
    assert fleet.row("status", *words).out.startswith("Plan of fleet shops\n")


@pytest.mark.parametrize(
    ("formats", "on_error"),
    [(("json",), True), (("json", "text=x.txt"), True), (("text", "json=x.json"), False), (("json=x.json",), False)],
)
def test_the_plans_are_shown_before_the_question_beside_another_format(
    fleet: Fleet, formats: Sequence[str], on_error: bool
) -> None:
    run = fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    result = fleet.row("apply", run, *(f"--format={form}" for form in formats), "(no)")
    head = "Plan of fleet shops\n"
    assert (result.err.startswith(head), result.out.startswith(head)) == (on_error, not on_error)


def test_a_file_is_as_wide_as_any_and_has_no_colors(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.put(ENDED, make_plans(), PLAIN, WIDE, WIDER)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    fleet.environ |= {"COLUMNS": "200", "TERM": "xterm"}
    assert fleet.row("report", "--format", "text=x.txt").out == ""
    written = (fleet.root / "x.txt").read_text()
    printed = fleet.row("report").out
    assert max(map(len, written.splitlines())) <= 80 < max(map(len, printed.splitlines()))
    assert ("\x1b[" in printed, "\x1b[" in written) == (True, False)
    assert "\x1b[" not in fleet.row("report", "--no-color").out


# --- parts of the commands


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [("tls://host:8786", True), ("tcp://127.0.0.1:8786/", True), ("tls://host", False), ("http://host:1", False),
     ("tls://a/b:1", False), ("tls://host:port", False)],
)  # fmt: skip
def test_a_scheduler_has_a_scheme_a_host_and_a_port(text: str, is_valid: bool) -> None:
    (option,) = (param for param in plan_command.command.params if param.name == "scheduler")
    context = click.Context(plan_command.command)
    if is_valid:
        assert option.process_value(context, text) == text
    else:
        with pytest.raises(click.BadParameter, match="is not an address such as tls://host:8786"):
            option.process_value(context, text)


VERBS = {RunVerb.PLAN: "planning", RunVerb.APPLY: "applying", RunVerb.DRIFT: "checking drift"}


@pytest.mark.parametrize("verb", RunVerb)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_names_what_is_done_and_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: RunVerb, is_terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    output.set_log_format("json")  # at a terminal too, without a bar
    states = {TaskState.WAITING: 2, TaskState.FAILED: 0}
    with report_progress(FleetOptions(), replace(RUN, verb=verb)) as report:
        report(FleetProgress(states, "all", 0.0, "paused"))
    line = json.loads(capsys.readouterr().err)
    assert line["message"] == f"{VERBS[verb]}, run {RUN.id}: 0 of 2 done, 2 waiting; the run waits: paused"
    assert (line["tasks"], line["waiting"]) == ({"waiting": 2}, "paused")
    with report_progress(FleetOptions(quiet=True), RUN) as report:
        report(FleetProgress(states, "all", 0.0, "paused"))
    assert capsys.readouterr().err == ""


def open_session(fleet: Fleet, **settings: Any) -> session.FleetSession:
    write_fleet(fleet.root, MEMBERS, projects={"base": ()}, **settings)
    return session.open_session(FleetOptions(file=fleet.root / "fleet.yaml"))


def test_a_store_on_a_server_exists_and_a_file_may_not(fleet: Fleet) -> None:
    assert open_session(fleet, store="postgresql://db.example.com/fleet").has_store
    assert not open_session(fleet, store="state/other.db").has_store


@pytest.mark.parametrize(("source", "commit"), [("/srv/infra", ""), ("https://git.example.com/infra.git", RUN.commit)])
def test_workers_check_out_the_commit_of_a_run_from_a_repository_only(fleet: Fleet, source: str, commit: str) -> None:
    found = open_session(fleet).source_of(replace(RUN, source=source))
    assert (found.source, found.file, found.commit) == (source, RUN.file, commit)


def test_a_run_has_the_commit_and_the_person_of_its_command(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "read_commit", lambda *_: "c0ffee" * 7)
    fleet.environ |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/i", "GITHUB_ACTOR": "octocat"}
    assert fleet.row("pause", "-q").code == 0
    run = json.loads(fleet.row("plan", "--format", "json").out)["run"]
    assert (run["commit"], run["actor"], run["health"]) == ("c0ffee" * 7, "octocat", False)
    assert json.loads(fleet.row("drift", "--health", "--format", "json").out)["run"]["health"] is True
