"""A run for each state of its tasks: exit codes, sentences and the next commands, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.fleet import (
    Fleet,
    FleetProject,
    Member,
    Pause,
    RunState,
    RunVerb,
    TaskRecord,
    TaskState,
    Wave,
)
from reconciler.model.health import Actor, Health, State
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.health import FleetHealth
from reconciler.rendering.fleet.openings import name_variables
from reconciler.rendering.fleet.reasons import abstract, abstract_numbers
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.rendering.fleet.waits import WaitKind
from tests.rendering.fleets import (
    APPLY,
    ENDED,
    JUDGED,
    NOON,
    PLAIN,
    RUN,
    SHAPES,
    WIDE,
    fleet,
    roll_up,
    task,
    with_health,
)
from tests.rendering.test_text import compare

ILL = Health(State.DEGRADED, "it is broken", "mend it", Actor.YOU)
TASKS: dict[str, Sequence[TaskRecord]] = {
    "no task": (),
    "changed": (replace(task(1), exit_code=exit_codes.CHANGES),),
    "unchanged": (replace(task(1), counts={}, changes={}, shape=""),),
    "wide": (task(1, digest=WIDE), task(2, digest=WIDE)),
    "failed": (task(1), task(2, TaskState.FAILED)),
    "only failed": (replace(task(1, TaskState.FAILED), exit_code=exit_codes.ERROR),),
    "partly": (replace(task(1, TaskState.FAILED), exit_code=exit_codes.PARTLY),),
    "some unauthorized": (task(1, TaskState.FAILED), replace(task(2, TaskState.FAILED), exit_code=exit_codes.ERROR)),
    "all unauthorized": (replace(task(1, TaskState.FAILED), exit_code=exit_codes.AUTH),),
    "blocked": (task(1), task(2, TaskState.BLOCKED)),
    "stale": (task(1, TaskState.STALE), task(2, TaskState.SKIPPED)),
    "skipped": (task(1, TaskState.SKIPPED), replace(task(2), counts={})),
    "skipped after": (task(1), task(2, TaskState.SKIPPED)),
    "running": (task(1), task(2, TaskState.RUNNING)),
    "waiting": (task(1), task(2, TaskState.WAITING, wave=1)),
    "degraded": (with_health(1, ILL), with_health(2)),
    "healthy": (with_health(1),),
}
WAVES = (Wave("first"), Wave("second", approve=True))


def tell(seen: RollUp) -> Iterator[str]:
    code, with_changes = seen.exit_code(), seen.exit_code(changes=exit_codes.CHANGES)
    yield f"exits {code}, {with_changes}, {seen.health_exit_code}; {seen.ended_members} ended; {seen.has_applied=}"
    for text in (phrases.describe_members(seen), phrases.describe_changes(seen), phrases.describe_health(seen)):
        if text:
            yield text
    if seen.wait is not None:
        yield f"wait: {seen.wait}"
    if end := phrases.describe_end(seen):
        yield f"end: {end}"
    yield from (f"{purpose}: {command}" for purpose, command in phrases.next_commands(seen))
    yield f"waves {phrases.has_waves(seen)} {[f'{row.name} {row.state} {row.ended}' for row in seen.waves]}"
    yield f"tasks {[(row.wave, row.actions, row.exit_code) for row in seen.tasks]} {len(seen.access)} {seen.silent}"


@pytest.mark.parametrize("verb", RunVerb)
def test_a_run_is_described_in_each_state(verb: RunVerb) -> None:
    def list_lines() -> Iterator[str]:
        for (name, tasks), state in product(TASKS.items(), RunState):
            run = replace(JUDGED if verb is RunVerb.DRIFT else APPLY, verb=verb, state=state)
            if state is RunState.OPEN:
                run = replace(run, ended=None)
            yield f"{name}, {state}"
            yield from (f"  {line}" for line in tell(roll_up(tasks, run, WAVES)))

    compare(f"rollup-{verb}.txt", "".join(f"{line}\n" for line in list_lines()))


def test_a_wait_has_a_reason() -> None:
    def list_lines() -> Iterator[str]:
        first = replace(task(1), ended=NOON)
        tasks = (first, task(2, TaskState.WAITING, wave=1))
        for pause in (Pause("f", NOON), Pause("f", NOON, NOON + 90), Pause("f", NOON, NOON + 91, "why", "mara")):
            yield f"{pause}: {roll_up(tasks, APPLY, WAVES, pause=pause).wait}"
        for approve, approved, least in product((False, True), ((), ("b",)), (0.0, 90.0, 91.0)):
            waves = (Wave("a", min_success_time=least), Wave("b", approve=approve))
            yield f"{approve} {approved} {least}: {roll_up(tasks, replace(APPLY, approved_waves=approved), waves).wait}"
        ended = (replace(task(1), ended=NOON), replace(task(2), ended=None), replace(task(3), ended=NOON + 5))
        later = (*ended, task(4, TaskState.WAITING, wave=1))
        yield f"{roll_up(later, APPLY, (Wave('a', min_success_time=100.0), Wave('b'))).wait}"
        several = (
            replace(task(1), ended=NOON),
            replace(task(2, wave=1), ended=NOON + 1),
            task(3, TaskState.WAITING, wave=2),
        )
        for first_time, second_time in ((100.0, 0.0), (0.0, 100.0), (101.0, 100.0), (100.0, 100.0)):
            three = (Wave("a", min_success_time=first_time), Wave("b", min_success_time=second_time), Wave("c"))
            yield f"{first_time} {second_time}: {roll_up(several, APPLY, three).wait}"
        running = (task(1, TaskState.RUNNING), task(2, TaskState.WAITING, wave=1))
        yield f"running: {roll_up(running, APPLY, (Wave('a'), Wave('b', approve=True))).wait}"

    compare("rollup-waits.txt", "".join(f"{line}\n" for line in list_lines()))


@pytest.mark.parametrize(
    ("state", "tasks", "waits"),
    [
        (RunState.OPEN, (TaskState.WAITING,), True),
        (RunState.OPEN, (TaskState.SUCCEEDED,), False),
        (RunState.FAILED, (TaskState.WAITING,), False),
        (RunState.OPEN, (TaskState.SUCCEEDED, TaskState.WAITING), True),
    ],
)
def test_only_an_open_run_with_something_left_waits(state: RunState, tasks: Sequence[TaskState], waits: bool) -> None:
    records = [task(place, state) for place, state in enumerate(tasks, 1)]
    seen = build_rollup(fleet(3), replace(APPLY, state=state), records, {}, NOON, Pause("shops", NOON))
    assert (seen.wait is not None and seen.wait.kind is WaitKind.PAUSE) is waits


def test_the_health_of_a_run_in_numbers() -> None:
    (seen,) = [roll_up([task(1)], JUDGED)]
    for states, left_out, text, is_settled in (
        ({}, 0, "Health: no member was checked.", True),
        ({}, 1, "Health: no member was checked. 1 member of the fleet not checked by this run.", False),
        ({"healthy": 1}, 0, "Health: 1 member healthy.", True),
        ({"healthy": 2}, 2, "Health: 2 members healthy. 2 members of the fleet not checked by this run.", False),
        ({"degraded": 2, "healthy": 3}, 0, "Health: 2 members degraded, 3 healthy.", False),
        ({"unknown": 1, "healthy": 3}, 0, "Health: 1 member unknown, 3 healthy.", False),
    ):
        health = FleetHealth(states, (), left_out)
        found = replace(seen, health=health, drifted=0)
        assert (phrases.describe_health(found), health.is_settled) == (text, is_settled)
        degraded, other = exit_codes.DEGRADED, exit_codes.DONE if is_settled else exit_codes.CHANGES
        assert found.health_exit_code == (degraded if "degraded" in states else other)
        assert replace(found, drifted=1).health_exit_code == (degraded if "degraded" in states else exit_codes.CHANGES)


def test_members_that_take_part_in_no_project_are_not_left_out() -> None:
    members = {name: Member(name, {"tier": tier}) for name, tier in (("shop-1", "a"), ("b", "a"), ("c", "b"))}
    known = Fleet("shops", members, {"base": FleetProject("base", "base", select={"tier": ("a",)})}, fleet(1).api_key)
    health = build_rollup(known, JUDGED, [with_health(1)], {}, NOON).health
    assert health is not None
    assert (health.left_out, health.states) == (1, {"healthy": 1})


def test_one_wave_is_shown_if_it_needs_approval() -> None:
    for waves, is_shown in (((Wave("a"),), False), ((Wave("a", approve=True),), True)):
        assert phrases.has_waves(roll_up([task(1)], APPLY, waves)) is is_shown
    assert phrases.has_waves(roll_up([task(1), task(2, wave=1)], APPLY, (Wave("a"), Wave("b"))))


# --- what differs between members

KNOWN = Member(
    "shop-1",
    {},
    {
        "domain": "one.example.com",
        "short": "ab",
        "three": "abc",
        "empty": "",
        "number": 7,
        "address": "IPPolicy/own",
        "nested": {"list": ["inner", {"x": "deep"}]},
    },
)
TEXTS = (
    "",
    "plain",
    "shop-1",
    "xshop-1 and shop-1x and shop-1.",
    "shop-1shop-1 shop-1 shop-1",
    "one.example.com has ab and abc, inner and deep, 7 of 70",
    "TLSEdge/shop-1 is not in IPPolicy/one.example.com, Unknown/shop-1",
    "TLSEdge/e10: status 404, ERR_NGROK_413, op_2ABCDEFGH and 12 at 2026-11-23 12:00:01.5 UTC",
    "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f deadbeef0 abcdefab 1.2.3:4 x1 1x",
    "${{ var.n1 }} is 1… of 2",
    "ab shop-1x",
    "IPPolicy/own is wrong",
    "12 of shop-1: TLSEdge/e10 and one.example.com/TLSEdge/b",
    "a\x1b[31mshop-1",
)


def test_differences_between_members_are_parts_of_a_pattern() -> None:
    def list_lines() -> Iterator[str]:
        for text, known in product(TEXTS, (KNOWN, None)):
            pattern = abstract(text, "shop-1", known)
            yield f"{text!r} {known is not None}: {pattern.text}"
            yield f"  {pattern.parts} {sorted(pattern.names)} {pattern.with_names}"
            yield f"  {abstract_numbers(text)!r}"
            for shortest in (1, 3):
                yield f"  {shortest}: {name_variables('shop-1', known, shortest=shortest)(text)!r}"

    compare("patterns.txt", "".join(f"{line}\n" for line in list_lines()))


def test_a_variable_with_the_name_of_its_member_wins() -> None:
    assert name_variables("a", Member("a", {}, {"n": "a"}))("x a a-b ab") == "x ${{ var.n }} ${{ var.n }}-b ab"
    assert name_variables("a", Member("a", {}, {}), shortest=3)("x a") == "x ${{ member.name }}"


def test_reasons_are_grouped_and_ordered() -> None:
    def fail_task(place: int, reason: str, state: TaskState = TaskState.FAILED, project: str = "base") -> TaskRecord:
        return replace(task(place, state), reason=reason, project=project)

    tasks = [
        *(fail_task(place, f"TLSEdge/e{place} is wrong") for place in range(1, 6)),
        fail_task(5, "TLSEdge/e9 is wrong", project="edge"),
        *(fail_task(place, "b is wrong") for place in (6, 7)),
        *(fail_task(place, "a is wrong") for place in (8, 9)),
        fail_task(10, "", TaskState.SKIPPED),
        fail_task(11, "late", TaskState.STALE),
        *(fail_task(place, "no", TaskState.BLOCKED) for place in (12, 13, 14)),
        fail_task(15, "ran", TaskState.RUNNING),
        fail_task(16, "done", TaskState.SUCCEEDED),
    ]
    rows = roll_up(tasks, RUN).reasons
    compare("reasons.txt", "".join(f"{row}\n" for row in rows))


def test_shapes_and_runs_in_numbers() -> None:
    def list_lines() -> Iterator[str]:
        for run in (ENDED, replace(APPLY, approved_shapes=(WIDE,)), replace(ENDED, verb=RunVerb.DRIFT)):
            tasks = [
                task(1, digest=WIDE),
                task(2, digest=WIDE),
                *(task(place) for place in (3, 4, 5, 6)),
                task(7, digest="9"),
            ]
            seen = roll_up(tasks, run, shapes={digest: SHAPES[digest] for digest in (WIDE, PLAIN)})
            yield from (f"{row}" for row in seen.shapes)
            yield f"{[row.digest for row in seen.shapes_to_approve]} {seen.requests} {seen.seconds}"
            yield f"{seen.changed} {seen.drifted}"
            yield f"{dict(seen.states)} {dict(seen.actions)} {sorted(seen.plans)} {[row.wave for row in seen.tasks]}"
            yield from (f"{row}" for row in seen.access)
            yield f"{list(phrases.describe_run(seen))}"

    compare("rollup-shapes.txt", "".join(f"{line}\n" for line in list_lines()))


def test_a_run_of_hundreds_of_members_that_ended_has_no_next_command() -> None:
    seen = roll_up([replace(task(place), counts={}) for place in range(1, 301)], APPLY)
    assert (list(phrases.next_commands(seen)), seen.exit_code(), seen.ended_members) == ([], exit_codes.DONE, 300)
