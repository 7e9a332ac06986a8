"""A fleet run in every format: compared with golden files, limited in size, and with foreign text escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as xml

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model import exit_codes
from reconciler.model.access_change import Verdict
from reconciler.model.fleet import Amount, Member, Pause, Run, RunState, RunVerb, TaskState, Wave
from reconciler.model.health import Health, State
from reconciler.rendering import terminal_text
from reconciler.rendering.fleet import junit, markdown, report_json, text
from reconciler.rendering.fleet.reasons import abstract
from reconciler.rendering.fleet.rollup import RollUp, build_rollup
from reconciler.rendering.html import fleet_page
from reconciler.rendering.wire.plan_json import write_plan
from tests.rendering import fleets, hostile
from tests.rendering.fleets import (
    APPLY,
    APPLYING,
    DNS,
    DRIFTED,
    ENDED,
    ILL,
    JUDGED,
    NOON,
    PLAIN,
    PLANNED,
    RUN,
    STOPPED,
    WAVES,
    WIDE,
    roll_up,
    task,
    with_health,
    without_record,
)
from tests.rendering.test_html import Tags
from tests.rendering.test_markdown import structure
from tests.rendering.test_text import compare
from tests.security.test_orders import orders_in

RUNS = {"plan": PLANNED, "apply": APPLYING, "stopped": STOPPED, "drift": DRIFTED, "health": ILL}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_fits_eighty_columns(name: str) -> None:
    page = text.render_text(RUNS[name])
    compare(f"fleet-{name}-80.txt", page)
    assert max(map(terminal_text.width, page.splitlines())) <= 80
    assert "\x1b" not in page


def test_colors_add_no_information_to_a_run() -> None:
    colored = text.render_text(STOPPED, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text.render_text(STOPPED)
    assert "\x1b[1;31mFailed: 2 members" in colored


@pytest.mark.parametrize("render", [text.render_status, text.render_text, markdown.render_markdown])
def test_members_without_a_heartbeat_are_named_with_the_time_of_the_last_one(render: Callable[[RollUp], str]) -> None:
    running = [
        replace(task(place, TaskState.RUNNING), alive=NOON - age)
        for place, age in ((1, 15.0), (2, 59.0), (3, 300.0), (4, 3600.0))
    ]
    ended = replace(task(5), alive=NOON - 7200.0)
    rollup = build_rollup(fleets.fleet(5), RUN, [*running, ended], {}, NOON)
    assert [member for member, _ in rollup.silent] == ["shop-4", "shop-3"]
    rendered = " ".join(render(rollup).split())
    assert (
        "No heartbeat from shop-4 since 2026-11-23 11:00 UTC (60 min), shop-3 since 2026-11-23 11:55 UTC (5 min): "
        "the worker hangs or died, or cannot reach the store" in rendered
    )
    closed = build_rollup(fleets.fleet(5), replace(RUN, state=RunState.FAILED), [*running, ended], {}, NOON)
    assert closed.silent == ()


def test_the_markdown_of_a_plan_has_each_shape_once() -> None:
    compare("fleet-plan.md", markdown.render_markdown(PLANNED))


def test_the_markdown_of_an_apply_has_its_waves_and_failures() -> None:
    compare("fleet-stopped.md", markdown.render_markdown(STOPPED))


def test_junit_has_a_case_for_each_member_and_project() -> None:
    compare("fleet-stopped.xml", junit.render_junit(STOPPED))


def test_drift_is_a_failure_in_junit() -> None:
    suites = xml.fromstring(junit.render_junit(DRIFTED))  # noqa: S314 - our own text
    assert (suites.get("tests"), suites.get("failures")) == ("6", "4")
    assert [failure.get("type") for failure in suites.iter("failure")] == ["drift"] * 4


# --- entry points


def summarize(seen: RollUp) -> list[tuple[str, int, str, tuple[str, ...]]]:
    return [(row.access.entry_point, row.members, row.exemplar, row.shapes) for row in seen.access]


def test_an_entry_point_that_many_members_open_is_one_row_with_the_variables_of_the_members() -> None:
    other = fleets.shape(WIDE, "shop-11")  # another shape: its plan also has other changes
    tasks = [
        *(task(place, digest=WIDE) for place in range(1, 10)),
        *(task(place, digest="0" * 12) for place in (11, 12)),
    ]
    seen = roll_up(tasks, ENDED, shapes={**fleets.SHAPES, "0" * 12: other})
    assert summarize(seen) == [("tls://${{ var.domain }}", 11, "shop-8", (WIDE, "0" * 12))]
    assert seen.access[0].access.more == ("tls://admin.${{ var.domain }}",)
    assert seen.access[0].first == ("shop-1", "shop-2", "shop-3")


def test_entry_points_that_open_to_others_are_rows_of_their_own_the_gravest_first() -> None:
    plan = fleets.plan("shop-1", is_wide=True)
    first, second = plan.access
    narrowed = replace(first, verdict=Verdict.NARROWS, after="10.0.0.0/9")
    changed = replace(plan, access=(narrowed, replace(second, after="203.0.113.0/24")))
    shapes = {WIDE: fleets.shape(WIDE, "shop-8"), PLAIN: replace(fleets.SHAPES[PLAIN], plan=write_plan(changed))}
    tasks = [*(task(place) for place in (1, 2, 3)), *(task(place, digest=WIDE) for place in (8, 9))]
    found = [(row.access.verdict, row.access.after, row.members) for row in roll_up(tasks, ENDED, shapes=shapes).access]
    assert found == [
        (Verdict.WIDENS, "203.0.113.0/24", 3),
        (Verdict.WIDENS, "everyone", 2),
        (Verdict.NARROWS, "10.0.0.0/9", 3),
    ]


FORMATS = [text.render_text, markdown.render_markdown, fleet_page.render_page]


def render_words(render: Callable[[RollUp], str], seen: RollUp) -> str:
    """A page as one line of words without markup."""
    words = re.sub(r"<style>.*?</style>|<script.*?</script>|<[^>]*>", " ", render(seen), flags=re.DOTALL)
    return " ".join(words.replace("`", "").replace("**", "").split())


@pytest.mark.parametrize("render", FORMATS)
def test_drift_of_a_fleet_reports_what_was_opened_in_the_past(render: Callable[[RollUp], str]) -> None:
    words = render_words(render, DRIFTED)
    assert "access was widened on the platform: tls://${{ var.domain }} from 10.0.0.0/8 → everyone" in words
    assert "because of IPPolicyRule/ipr_of_shop-3, which was added" in words
    assert "lets in requests that were refused" not in words


@pytest.mark.parametrize("render", FORMATS)
def test_a_plan_of_a_fleet_names_each_entry_point_once_with_its_shape(render: Callable[[RollUp], str]) -> None:
    words = render_words(render, PLANNED)
    assert words.count("tls://${{ var.domain }} lets in requests that were refused") == 1
    for part in ("shop-8, shop-9", "10.0.0.0/8 → everyone", "and 1 more entry point: tls://admin.${{ var.domain }}"):
        assert part in words
    assert f"values of shop-8; shape {WIDE}" in words


def test_an_apply_does_not_repeat_the_entry_points_that_were_reviewed() -> None:
    assert roll_up([task(8, digest=WIDE)], APPLY, WAVES).access == ()


def test_many_changes_of_entry_points_are_truncated() -> None:
    access = tuple(replace(entry, after=f"10.{number}.0.0/16") for number in range(200) for entry in
                   fleets.list_openings("shop-8", "no one", ()))  # fmt: skip
    wide = replace(fleets.shape(WIDE, "shop-8"), plan=write_plan(replace(fleets.plan("shop-8"), access=access)))
    seen = roll_up([task(8, digest=WIDE)], ENDED, shapes={WIDE: wide})
    assert len(seen.access) == 200
    assert "180 more rows; --format json has all" in text.render_text(seen)
    assert "180 more rows" in markdown.render_markdown(seen)
    assert "and 100 more rows; --format json lists all of them" in fleet_page.render_page(seen)
    assert len(json.loads(report_json.render_json(seen))["access"]) == 200


# --- health


@pytest.mark.parametrize("render", FORMATS)
def test_a_reason_that_many_members_have_is_one_row_with_the_variables_of_the_members(
    render: Callable[[RollUp], str],
) -> None:
    words = render_words(render, ILL)
    ill = "degraded: ReservedDomain/agents: the certificate of agents.${{ var.domain }} waits for DNS since …"
    advice = "(the owner of the DNS zone acts: set agents.${{ var.domain }} CNAME agents.cname.example)"
    assert words.count(f"{ill} {advice}") == 1
    assert "unknown: the account was not checked: The API key of … is invalid." in words
    assert words.index("degraded: Res") < words.index("unknown: the") < words.index("progressing: Res")
    assert "Health: 4 members degraded, 1 unknown, 1 progressing, 1 healthy." in words
    assert "what to do in" not in words


def test_advice_that_differs_is_that_of_one_member() -> None:
    seen = roll_up([without_record(place, f"{place}x.cname.example") for place in (2, 3)], JUDGED)
    (ill,) = seen.health.rows if seen.health else ()
    assert (ill.members, ill.row.health.advice) == (2, "set agents.shop-2.example.com CNAME 2x.cname.example")
    assert "this is what to do in shop-2; it differs in the others" in text.render_status(seen, health=True)


def test_objects_with_different_numbers_in_their_names_are_different_rows() -> None:
    tasks = [with_health(place, DNS, address=f"ReservedDomain/host-{place}") for place in (1, 2)]
    seen = roll_up(tasks, JUDGED)
    assert [row.members for row in seen.health.rows] == [1, 1] if seen.health else False


def test_a_page_shows_the_gravest_reasons_of_many() -> None:
    tasks = [with_health(place, DNS, address=f"ReservedDomain/host-{place}") for place in range(1, 201)]
    seen = roll_up(tasks, JUDGED)
    assert "180 more rows; --format json has all" in text.render_text(seen)
    assert "180 more rows" in markdown.render_markdown(seen)
    assert "and 100 more rows; --format json lists all of them" in fleet_page.render_page(seen)


def test_a_degraded_member_is_a_failure_in_junit() -> None:
    suites = xml.fromstring(junit.render_junit(ILL))  # noqa: S314 - our own text
    assert suites.get("failures") == "5"
    assert [failure.get("type") for failure in suites.iter("failure")] == ["degraded"] * 4 + ["failed"]


@given(st.lists(st.one_of(st.none(), st.lists(st.sampled_from([*State][1:]), max_size=3)), max_size=6), st.booleans())
def test_a_member_that_was_not_read_is_never_healthy(members: list[list[State] | None], drifts: bool) -> None:
    """None: the account of a member could not be read."""
    tasks = [
        task(place, BAD) if found is None else with_health(place, *(Health(state, str(state)) for state in found))
        for place, found in enumerate(members, start=1)
    ]
    if drifts and tasks and tasks[0].state is DONE:
        tasks[0] = replace(tasks[0], exit_code=exit_codes.CHANGES)
    seen = roll_up(tasks, JUDGED)
    assert seen.health is not None
    every = {state for found in members for state in (found if found is not None else [State.UNKNOWN])}
    assert seen.health.states.get(State.HEALTHY, 0) == sum(found == [] for found in members)
    assert sum(seen.health.states.values()) == len(members)
    assert {row.row.health.state for row in seen.health.rows} == every
    expected = exit_codes.DEGRADED if State.DEGRADED in every else exit_codes.CHANGES if every or seen.drifted else 0
    assert seen.health_exit_code == expected


def test_members_that_the_run_left_out_are_named_and_not_healthy() -> None:
    partly = build_rollup(fleets.fleet(3), JUDGED, [with_health(1)], {}, NOON)
    assert "Health: 1 member healthy. 2 members of the fleet not checked by this run." in text.render_text(partly)
    assert partly.health_exit_code == exit_codes.CHANGES
    assert partly.exit_code() == exit_codes.DONE  # what was asked for


def test_a_check_that_has_not_ended_is_unknown() -> None:
    seen = roll_up([with_health(1), task(2, TaskState.WAITING)], replace(JUDGED, state=RunState.OPEN, ended=None))
    assert "unknown: the account was not checked: its check has not ended" in render_words(text.render_text, seen)
    assert seen.health_exit_code == exit_codes.CHANGES


# --- JSON


@pytest.mark.parametrize("name", RUNS)
def test_json_fits_its_schema(name: str) -> None:
    written = json.loads(report_json.render_json(RUNS[name]))
    schema = json.loads((ROOT / "schemas/fleet-run.json").read_text(encoding="utf-8"))
    assert schema == report_json.report_schema()
    jsonschema.Draft202012Validator(schema).validate(written)
    plans = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas/plan.json").read_text(encoding="utf-8")))
    for plan in written["plans"].values():
        plans.validate(plan)
    assert set(written["plans"]) == {fleets.PLAIN, WIDE, fleets.OPENED}
    assert (written["health"] is None) == (name != "health")


# --- reasons


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("shop-1: connection refused", "…: connection refused"),
        ("shop-1.example.com is used by shop-12", "… is used by shop-…"),
        ("not found (status 404, ERR_NGROK_3200, op_2ABCDEFGHIJ)", "not found (status 404, ERR_NGROK_3200, …)"),
        ("edge edghts_2ABCDEFGHIJKLMNOPQRSTUVWXYZ is gone", "edge … is gone"),
        ("at 2026-11-23T12:00:01, 17 of 80", "at …, … of …"),
        ("commit 0123456789abcdef is unknown, id 8c7e0f2e-1b2a-4c3d-9e8f-0a1b2c3d4e5f", "commit … is unknown, id …"),
        ("TLSEdge/payments: v2 is not supported", "TLSEdge/…: v2 is not supported"),
        ("TLSEdge/e10 and TLSEdge/shop-1.", "TLSEdge/… and TLSEdge/…."),
        ("HTTP/1.1 of e10 failed", "HTTP/… of e10 failed"),
        ("cut …", "cut …"),
        ("an ashop-1 or shop-1a of shop-1", "an ashop-… or shop-…a of …"),
        ("", ""),
    ],
)
def test_differences_between_members_are_abstracted(reason: str, expected: str) -> None:
    member = Member("shop-1", {}, {"domain": "shop-1.example.com", "short": "a", "size": 3})
    found = abstract(reason, "shop-1", member)
    assert found.text == expected
    parts = iter(found.parts)
    assert re.sub("…", lambda _: next(parts), found.text) == reason


def test_the_same_error_of_many_members_is_one_reason() -> None:
    (row,) = roll_up([task(place, TaskState.FAILED) for place in range(1, 801)]).reasons
    assert (row.members, row.tasks, row.first) == (800, 800, ("shop-1", "shop-2", "shop-3"))


def test_a_reason_has_whole_names_of_resources_and_the_common_text_once() -> None:
    def fail(*names: str) -> list[str]:
        reasons = [f"TLSEdge/{name}: refers to IPPolicy/office, edge edgtls_2ABCDEFGHIJK" for name in names]
        failed = (replace(task(place, BAD), reason=reason) for place, reason in enumerate(reasons, 1))
        return [row.text for row in roll_up(list(failed), ENDED).reasons]

    common = "refers to IPPolicy/office, edge …"
    assert fail("e10", "e12") == [f"TLSEdge/e10, e12: {common}"]
    assert fail("e10", "e10") == [f"TLSEdge/e10: {common}"]
    assert fail(*(f"e{place}" for place in range(10, 20))) == [f"TLSEdge/e10, e11, e12 and 7 more: {common}"]


def test_errors_with_different_codes_are_different_reasons() -> None:
    tasks = [replace(task(place, TaskState.FAILED), reason=f"no (status {place + 400})") for place in (1, 3)]
    assert [row.text for row in roll_up(tasks).reasons] == ["no (status 401)", "no (status 403)"]


# --- shapes


def test_the_shape_with_the_worst_risk_is_listed_first_then_the_most_common() -> None:
    shapes = [(row.digest, row.members, list(row.risks)) for row in PLANNED.shapes]
    assert shapes == [(WIDE, 2, ["widens_access"]), (fleets.PLAIN, 7, [])]
    assert [row.digest for row in PLANNED.shapes_to_approve] == [WIDE]


def test_a_plan_of_another_release_is_counted_without_its_changes() -> None:
    other = replace(fleets.SHAPES[WIDE], plan='{"format": "reconciler plan", "version": 99}')
    seen = roll_up([task(1, digest=WIDE)], ENDED, shapes={WIDE: other})
    assert seen.plans == {}
    assert "1 to create, 1 to update in each member." in text.render_text(seen)
    assert WIDE in fleet_page.render_page(seen)
    assert WIDE in markdown.render_markdown(seen)


def test_a_run_without_success_shows_no_changes() -> None:
    page = text.render_text(roll_up([task(1, BAD)], ENDED), with_commands=False)
    assert page.splitlines()[-1] == "1 member: 1 failed."


def test_a_run_without_members_is_reported_as_such() -> None:
    assert "No member is selected." in text.render_text(roll_up([], ENDED))


# --- waves and waits

CANARY = [task(1), task(2)]
NEXT = [task(place, TaskState.WAITING, wave=1) for place in (3, 4)]
ENDED_BEFORE = [  # as created by `start_run`: the plan failed, or there are no changes
    task(5, TaskState.SKIPPED, wave=1),
    replace(task(6, wave=1), attempts=0, counts={}, changes={}, shape=""),
]
NOT_APPROVED = replace(task(7, TaskState.BLOCKED, wave=1), attempts=0)
PARTLY_ENDED = roll_up([*CANARY, *NEXT, *ENDED_BEFORE], APPLY, WAVES, now=NOON + 7200)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (APPLYING, ("approval", "wave half needs approval")),
        (
            roll_up([*CANARY, *NEXT], APPLY, WAVES, now=NOON + 60),
            ("min_success_time", "wave half starts at 2026-11-23 13:00 UTC: min_success_time of wave canary"),
        ),
        (
            roll_up([*CANARY, *ENDED_BEFORE, task(9, TaskState.WAITING, wave=2)], APPLY, WAVES, now=NOON + 60),
            ("min_success_time", "wave all starts at 2026-11-23 13:00 UTC: min_success_time of wave canary"),
        ),
        (
            roll_up([*CANARY, *NEXT], APPLY, WAVES, pause=Pause("shops", NOON, None, "incident 4", "octocat")),
            ("pause", "the fleet is paused since 2026-11-23 12:00 UTC by octocat: incident 4"),
        ),
        (
            roll_up([*NEXT], RUN, WAVES, pause=Pause("shops", NOON, NOON + 3600)),
            ("pause", "the fleet is paused since 2026-11-23 12:00 UTC, until 2026-11-23 13:00 UTC"),
        ),
        (PARTLY_ENDED, ("approval", "wave half needs approval")),
        (roll_up([*NEXT], RUN, WAVES, pause=Pause("shops", NOON, NOON + 30)), None),  # the pause has ended
        (roll_up([*NEXT], RUN, WAVES, pause=Pause("shops", NOON, NOON + 90)), None),  # it ends now
        (roll_up([*CANARY, *NEXT], replace(APPLY, approved_waves=("half",)), WAVES, now=NOON + 7200), None),
        (roll_up([task(1), task(2, TaskState.RUNNING), *NEXT], APPLY, WAVES, now=NOON + 7200), None),
        (STOPPED, None),
    ],
)
def test_an_open_run_shows_the_reason_of_its_wait(seen: RollUp, expected: tuple[str, str] | None) -> None:
    assert (None if seen.wait is None else (str(seen.wait.kind), seen.wait.text)) == expected


def test_a_wave_waits_although_some_of_its_members_ended_before_it() -> None:
    seen = roll_up([*CANARY, *NEXT, *ENDED_BEFORE, NOT_APPROVED], APPLY, WAVES, now=NOON + 7200)
    wave = seen.waves[1]
    assert (wave.state, wave.states) == ("waiting", {"waiting": 2, "succeeded": 1, "blocked": 1, "skipped": 1})
    output = " ".join(text.render_text(seen).split())
    assert "half waiting 5 members: 2 waiting, 1 succeeded, 1 blocked, 1 skipped (needs approval)" in output
    begun = roll_up([*CANARY, task(8, wave=1), *NEXT], replace(APPLY, approved_waves=("half",)), WAVES)
    assert begun.waves[1].state == "running"


@pytest.mark.parametrize(
    ("seen", "commands"),
    [
        (
            PLANNED,
            [f"reconciler fleet retry {RUN.id} --only failed", f"reconciler fleet apply {RUN.id} --approve {WIDE}"],
        ),
        (APPLYING, [f"reconciler fleet resume {APPLY.id} --approve-wave half"]),
        (PARTLY_ENDED, [f"reconciler fleet resume {APPLY.id} --approve-wave half"]),
        (STOPPED, [f"reconciler fleet retry {APPLY.id} --only failed", "reconciler fleet plan"]),
        (DRIFTED, []),
        (
            roll_up([task(1), task(2, TaskState.SKIPPED)], replace(APPLY, state=RunState.SUCCEEDED)),
            [f"reconciler fleet retry {APPLY.id} --only skipped"],
        ),
        (roll_up([*CANARY, *NEXT], APPLY, WAVES, pause=Pause("shops", NOON)), ["reconciler fleet resume"]),
        (roll_up([task(1), task(2, TaskState.RUNNING)], APPLY), [f"reconciler fleet resume {APPLY.id}"]),
    ],
)
def test_the_next_command_is_named(seen: RollUp, commands: list[str]) -> None:
    lines = text.render_text(seen).splitlines()
    assert [line.strip() for line in lines if line.startswith("  reconciler fleet")] == commands


# --- exit codes


def roll_up_states(*states: TaskState, verb: RunVerb = RunVerb.APPLY) -> RollUp:
    run: Run = replace(ENDED, verb=verb)
    return roll_up([task(place, found) for place, found in enumerate(states, start=1)], run)


DONE, BAD = TaskState.SUCCEEDED, TaskState.FAILED
APPLIED = replace(ENDED, verb=RunVerb.APPLY)
IN_SYNC = replace(task(1), counts={}, changes={}, shape="")
TOLERANT = (replace(WAVES[0], max_failures=Amount(1)), *WAVES[1:])


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (roll_up_states(DONE), exit_codes.DONE),
        (roll_up_states(DONE, verb=RunVerb.PLAN), exit_codes.DONE),
        (roll_up_states(DONE, BAD, verb=RunVerb.PLAN), exit_codes.AUTH),  # every failure is a rejected key
        (roll_up_states(DONE, BAD), exit_codes.PARTLY),
        (roll_up([task(1), replace(task(1, BAD), project="edge")], APPLIED), exit_codes.PARTLY),  # of one member
        (roll_up([replace(task(1, BAD), counts={"create": 2}), task(2, BAD)], APPLIED), exit_codes.PARTLY),
        (roll_up([replace(task(1, BAD), exit_code=5), task(2, BAD)], APPLIED), exit_codes.PARTLY),
        (roll_up([IN_SYNC, task(2, BAD)], APPLIED), exit_codes.AUTH),  # nothing was changed
        (roll_up([IN_SYNC, replace(task(2, BAD), exit_code=1)], APPLIED), exit_codes.ERROR),
        (roll_up([IN_SYNC, task(2, TaskState.SKIPPED)], APPLIED), exit_codes.ERROR),
        (roll_up_states(BAD), exit_codes.AUTH),
        (roll_up([replace(task(1, BAD), exit_code=1), task(2, BAD)], ENDED), exit_codes.ERROR),
        (roll_up_states(DONE, TaskState.STALE), exit_codes.STALE),
        (roll_up_states(DONE, TaskState.STALE, TaskState.BLOCKED), exit_codes.BLOCKED),
        (roll_up_states(DONE, TaskState.SKIPPED), exit_codes.PARTLY),  # its plan failed
        (APPLYING, exit_codes.BLOCKED),
        (PARTLY_ENDED, exit_codes.BLOCKED),  # 5 only after the wave was approved
        (roll_up([*CANARY, task(9, TaskState.STALE), *NEXT], APPLY, WAVES, now=NOON + 7200), exit_codes.BLOCKED),
        (roll_up([*CANARY, task(9, BAD), *NEXT], APPLY, TOLERANT, now=NOON + 7200), exit_codes.PARTLY),
        (roll_up([*CANARY, *NEXT], APPLY, WAVES, now=NOON + 60), exit_codes.PARTLY),
        (STOPPED, exit_codes.PARTLY),
        (DRIFTED, exit_codes.CHANGES),
        (ILL, exit_codes.AUTH),  # a member failed
        (roll_up([without_record(1), with_health(2)], JUDGED), exit_codes.DEGRADED),
        (
            roll_up([without_record(1), replace(with_health(2), exit_code=2)], JUDGED),
            exit_codes.CHANGES,
        ),  # as of `drift --health`
        (roll_up([replace(task(1), counts={}, shape="")], replace(ENDED, verb=RunVerb.DRIFT)), exit_codes.DONE),
    ],
)
def test_the_exit_code_is_that_of_the_worst_member(seen: RollUp, code: int) -> None:
    assert seen.exit_code() == code


def test_a_plan_with_changes_has_the_detailed_exit_code_only_if_nothing_failed() -> None:
    assert roll_up_states(DONE, verb=RunVerb.PLAN).exit_code(changes=exit_codes.CHANGES) == exit_codes.CHANGES
    assert PLANNED.exit_code(changes=exit_codes.CHANGES) == exit_codes.AUTH


def test_a_member_has_the_worst_state_of_its_projects() -> None:
    seen = roll_up([task(1), replace(task(1, BAD), project="edge"), task(2)], ENDED)
    assert (seen.members, seen.states) == (2, {"succeeded": 1, "failed": 1})
    assert "Shape 0a1b2c3d4e5f: 2 members, project base" in text.render_text(seen)


# --- any run

states = st.sampled_from(TaskState)
runs = st.builds(
    lambda chosen, verb, state: roll_up(
        [
            replace(
                task(place // 2 + 1, found, wave=place % 3, digest=WIDE if place % 2 else fleets.PLAIN),
                project="base" if place % 2 else "edge",
            )
            for place, found in enumerate(chosen)
        ],
        replace(APPLY, verb=verb, state=state),
        WAVES,
    ),
    st.lists(states, max_size=12),
    st.sampled_from(RunVerb),
    st.sampled_from(RunState),
)


@given(runs)
def test_every_task_is_counted_once_and_a_failed_task_never_exits_0(seen: RollUp) -> None:
    unsuccessful = [task for task in seen.tasks if task.state in (BAD, TaskState.STALE, TaskState.BLOCKED)]
    skipped = [task for task in seen.tasks if task.state is TaskState.SKIPPED]
    assert sum(seen.states.values()) == seen.members == len({task.member for task in seen.tasks})
    assert sum(row.tasks for row in seen.reasons) == len(unsuccessful) + len(skipped)
    assert sum(sum(row.states.values()) for row in seen.shapes) == sum(bool(task.shape) for task in seen.tasks)
    assert not (unsuccessful and seen.exit_code() == exit_codes.DONE)
    if seen.run.verb is RunVerb.APPLY and any(task.state is BAD for task in seen.tasks):
        is_changed = any(task.state is DONE for task in seen.tasks)  # each that succeeded has counts
        assert seen.exit_code() == (exit_codes.PARTLY if is_changed else exit_codes.AUTH)
    suites = xml.fromstring(junit.render_junit(seen))  # noqa: S314 - our own text
    assert (suites.get("tests"), len(list(suites.iter("testcase")))) == (str(len(seen.tasks)), len(seen.tasks))
    assert len(list(suites.iter("failure"))) == int(suites.get("failures", "")) >= len(unsuccessful)
    for render in (text.render_text, text.render_status, markdown.render_markdown, fleet_page.render_page):
        assert render(seen)


# --- foreign text


@given(hostile.texts, st.booleans())
def test_foreign_text_changes_no_structure(written: str, is_health: bool) -> None:
    make = fleets.hostile_health if is_health else fleets.hostile_run
    bad, good = make(written), make(hostile.harmless(written))
    pages = [Tags(fleet_page.render_page(seen)) for seen in (bad, good)]
    assert pages[0].structure == pages[1].structure
    assert structure(markdown.render_markdown(bad)) == structure(markdown.render_markdown(good))
    suites = [xml.fromstring(junit.render_junit(seen)) for seen in (bad, good)]  # noqa: S314 - our own text
    assert [element.tag for element in suites[0].iter()] == [element.tag for element in suites[1].iter()]


@given(hostile.texts, st.booleans())
def test_no_format_contains_a_workflow_command(written: str, is_health: bool) -> None:
    seen = fleets.hostile_health(written) if is_health else fleets.hostile_run(written)
    for render in (
        text.render_text,
        markdown.render_markdown,
        junit.render_junit,
        report_json.render_json,
        fleet_page.render_page,
    ):
        assert orders_in(render(seen)) == []


def test_junit_has_no_character_that_xml_forbids() -> None:
    seen = roll_up([replace(task(1, BAD), reason="\x00\x1b[2J\ud800\ufffe\uffff <&>\"' end")], ENDED)
    (failure,) = xml.fromstring(junit.render_junit(seen)).iter("failure")  # noqa: S314 - our own text
    assert (failure.text or "").endswith("<&>\"' end")


@pytest.mark.parametrize("name", RUNS)
def test_no_secret_is_in_any_format(name: str) -> None:
    for render in (text.render_text, markdown.render_markdown, report_json.render_json, fleet_page.render_page):
        assert "hunter2" not in render(RUNS[name])


# --- size


def large(number: int, digests: int = 2) -> RollUp:
    """A run over this number of members and shapes, in which every third member fails."""
    states = (DONE, BAD, DONE)
    names = [f"{place:012x}" for place in range(digests)]
    shapes = {name: replace(fleets.SHAPES[WIDE], digest=name) for name in names}
    tasks = [task(place, states[place % 3], digest=names[place % digests]) for place in range(1, number + 1)]
    return roll_up(tasks, ENDED, shapes=shapes)


def test_a_page_of_ten_thousand_members_is_small_and_has_them_as_data() -> None:
    page = fleet_page.render_page(large(10_000))
    assert len(page) <= 2_000_000
    assert page.count("<tr") < 20  # rows are rendered on demand
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert len(json.loads(data)["rows"]) == 10_000


def test_a_page_is_small_if_every_member_has_its_own_reasons_and_labels() -> None:
    known = fleets.fleet(10_000)
    members = {
        name: replace(member, labels={"customer": f"customer {name} of many", "region": "eu"})
        for name, member in known.members.items()
    }
    tasks = [
        replace(
            task(place, BAD), reason="".join(f"{word}{letter} {place} " for word in ("why", "how") for letter in name)
        )
        for place, name in enumerate(map(str, range(10_000, 20_000)), start=1)
    ]
    page = fleet_page.render_page(build_rollup(replace(known, members=members), ENDED, tasks, {}, NOON))
    assert len(page) <= 2_000_000
    assert "`reconciler fleet report --format json` has the reason" in page


def test_a_page_of_many_shapes_omits_diffs_and_names_the_command_for_them() -> None:
    page = fleet_page.render_page(large(1200, digests=1200))
    assert len(page) <= 2_000_000
    assert "500 more shapes" in page
    assert "reconciler fleet report 20261123-120000-a1b2 --shape " in page


def test_markdown_and_text_of_many_shapes_are_truncated() -> None:
    seen = large(300, digests=300)
    page = markdown.render_markdown(seen)
    assert len(page) <= markdown.LIMIT
    assert "more shapes" in page
    assert "180 more shapes; --format json has all" in text.render_text(seen)


def test_only_its_own_style_and_scripts_are_allowed_on_the_page() -> None:
    page = fleet_page.render_page(PLANNED)
    assert "default-src &#39;none&#39;; " in page
    tags = Tags(page)
    assert not {name for tag in tags.structure if isinstance(tag, tuple) for name in tag[1:] if name.startswith("on")}
    assert all(re.fullmatch(r"#[a-z]+\d*", link) for link in tags.links)


def test_waves_are_shown_of_an_apply_only() -> None:
    assert "Waves:" not in text.render_text(roll_up([task(1)], ENDED, (Wave("a", approve=True),)))
    assert "Waves:" in text.render_text(APPLYING)


RESULTS = {
    "succeeded": None,
    "failed": "failure",
    "stale": "failure",
    "blocked": "failure",
    "skipped": "skipped",
    "waiting": "skipped",
    "running": "skipped",
}


@pytest.mark.parametrize("verb", RunVerb)
def test_a_case_of_junit_has_the_result_of_its_task_and_each_suite_its_numbers(verb: RunVerb) -> None:
    tasks = [task(place, state, wave=place % 2) for place, state in enumerate(TaskState, 1)]
    seen = roll_up(tasks, replace(RUN, verb=verb), [Wave("a"), Wave("b")])
    root = xml.fromstring(junit.render_junit(seen))  # noqa: S314 - our own text
    found = {
        case.get("name"): [child.tag for child in case if child.tag != "system-out"] for case in root.iter("testcase")
    }
    assert found == {one.member: [tag] if (tag := RESULTS[str(one.state)]) else [] for one in tasks}
    for suite in (root, *root.iter("testsuite")):
        numbers = [int(suite.get(name, "")) for name in ("tests", "failures", "skipped", "errors")]
        assert numbers == [len([*suite.iter(tag)]) for tag in ("testcase", "failure", "skipped", "error")]
