"""Numbers in sentences: none, one and several of everything that is counted, and the borders at which a list is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.fleet import Run, RunVerb, TaskState
from reconciler.model.health import Health, HealthRow, State
from reconciler.model.known_drift import IgnoredDifference
from reconciler.model.plan import Approval, ApprovalItem, Base, Forecast, Plan
from reconciler.model.problem import Problem
from reconciler.model.status import Sync, Synced
from reconciler.rendering import status
from reconciler.rendering.fleet import markdown as fleet_markdown
from reconciler.rendering.fleet import phrases as fleet_phrases
from reconciler.rendering.fleet import text as fleet_text
from reconciler.rendering.fleet.rollup import RollUp
from reconciler.rendering.plan import ci_annotations, findings, phrases, text
from reconciler.rendering.plan.outline import Outline, build_outline
from reconciler.rendering.plan.phrases import Flavour, Selected
from reconciler.rendering.wire import plan_json
from tests.harness.statuses import NOW, build_status
from tests.rendering.fleets import APPLY, DNS, ENDED, JUDGED, NOON, PLAIN, RUN, SHAPES, WIDE, roll_up, task, with_health

FAILED = TaskState.FAILED


def make_changes(number: int, *, pending: bool = False, action: Action = Action.UPDATE) -> tuple[Change, ...]:
    cause = ChangedBy.GIT if pending else ChangedBy.PLATFORM
    fields = (FieldChange("description", "a", "b", cause),)
    what = "edited" if pending else "drifted"
    return tuple(
        Change(Address("IPPolicy", f"{what}-{place}"), action, Reason.FIELDS, fields=fields, is_pending=pending)
        for place in range(number)
    )


def make_additions(number: int) -> tuple[Change, ...]:
    parent = Address("IPPolicy", "office")
    return tuple(
        Change(Address("IPPolicyRule", f"ipr_{place}"), Action.DELETE, Reason.ADDED, f"ipr_{place}", parent=parent)
        for place in range(number)
    )


def make_openings(number: int, verdict: Verdict = Verdict.WIDENS, *, apart: bool = True) -> tuple[AccessChange, ...]:
    return tuple(
        AccessChange(f"https://e{place}.example.com", verdict, f"a{place * apart}", "everyone", "", True, (), "")
        for place in range(number)
    )


def rows(**parts: object) -> Outline:
    return build_outline(Plan("prod", **parts))  # type: ignore[arg-type]


def drift(number: int, additions: int = 0, pending: int = 0) -> str:
    found = rows(
        changes=(*make_changes(number), *make_changes(pending, pending=True)), additions=make_additions(additions)
    )
    return phrases.verdict(found, Flavour.DRIFT, 9)


def access(**numbers: int) -> str:
    return phrases.count_access(
        rows(access=[entry for name, number in numbers.items() for entry in make_openings(number, Verdict[name])])
    )


def base(behind: int) -> str:
    found = rows(base=Base("main", "c0ffee1", behind=behind)).base
    assert found is not None
    return phrases.describe_base(found)


def tell_ignored(*until: str) -> str:
    return phrases.describe_ignored(rows(ignored=tuple(IgnoredDifference("IPPolicy/a", day) for day in until)))


def users(number: int) -> str:
    (found,) = rows(changes=make_changes(1)).changes
    names = tuple(f"TLSEdge/e{place}" for place in range(min(number, 8)))
    return phrases.describe_users(replace(found, users=names, user_count=number))


def tell_replacement(number: int) -> str:
    fields = tuple(FieldChange(f"f{place}", "a", "b", ChangedBy.GIT, True) for place in range(number))
    (found,) = rows(changes=(Change(Address("TLSEdge", "a"), Action.REPLACE, Reason.IMMUTABLE, fields=fields),)).changes
    return phrases.reason(found, Flavour.PLAN)


def subjects(number: int) -> str:
    items = tuple(ApprovalItem(f"BotUser/b{place}", "", "") for place in range(number))
    (found,) = rows(approvals=(Approval("delete", "BotUser", number, "", items=items),)).approvals
    return phrases.name_subjects(found, 2)


def tell_sync(drifted: int, pending: int) -> str:
    names = [tuple(f"{kind}/{place}" for place in range(number)) for kind, number in (("A", drifted), ("B", pending))]
    state = Synced.DRIFT if drifted else Synced.YES
    return status.describe_sync(build_status(sync=Sync(state, NOW, drifted=names[0], pending=names[1])))


def list_sentences() -> list[tuple[str, str]]:
    return [
        (phrases.describe_match(0), "0 resources match the manifests."),
        (phrases.describe_match(1), "1 resource matches the manifests."),
        (phrases.describe_match(2), "2 resources match the manifests."),
        (phrases.describe_match(Selected(0, of=1)), "0 of 1 resource match the manifests."),
        (phrases.describe_match(Selected(1, of=2)), "1 of 2 resources matches the manifests."),
        (phrases.describe_match(Selected(2, of=2)), "2 of 2 resources match the manifests."),
        (phrases.forecast(Forecast(0, 0.0), 0), "0 API calls"),
        (phrases.forecast(Forecast(1, 0.0), 0), "1 API call"),
        (phrases.forecast(Forecast(1, 0.0), 120), "1 API call, within the budget of 120 requests per minute"),
        (phrases.forecast(Forecast(2, 60.0), 120), "2 API calls, about 60 s at 120 requests per minute"),
        (phrases.forecast(Forecast(2, 60.0), 0), "2 API calls, about 60 s"),
        (drift(0), "No drift. 9 resources match the manifests."),
        (drift(1), "Drift: 1 resource changed on the platform."),
        (drift(2), "Drift: 2 resources changed on the platform."),
        (drift(0, 1), "Drift: 1 resource added on the platform."),
        (drift(1, 2), "Drift: 3 resources: 1 changed on the platform, 2 added on the platform."),
        (drift(0, 0, 1), "No drift. 1 resource has unapplied Git changes."),
        (drift(0, 0, 2), "No drift. 2 resources have unapplied Git changes."),
        (drift(1, 0, 1), "Drift: 1 resource changed on the platform. 1 resource has unapplied Git changes."),
        (access(), ""),
        (access(WIDENS=1), "Access: 1 entry point widens."),
        (access(WIDENS=2), "Access: 2 entry points widen."),
        (access(NARROWS=1), "Access: 1 entry point narrows."),
        (access(NARROWS=2), "Access: 2 entry points narrow."),
        (access(EXPOSES=1, CLOSES=2), "Access: 1 entry point exposed, 2 closed."),
        (access(LOCKS_OUT=2), "Access: 2 entry points locked out."),
        (base(0), ""),
        (base(1), "This branch is behind main by 1 commit: changes are not attributed; merge main first."),
        (base(2), "This branch is behind main by 2 commits: changes are not attributed; merge main first."),
        (tell_ignored(), ""),
        (tell_ignored(""), "1 known difference ignored."),
        (tell_ignored("2026-01-01"), "1 known difference ignored, until 2026-01-01."),
        (tell_ignored("2026-01-01", "2026-01-01"), "2 known differences ignored, until 2026-01-01."),
        (tell_ignored("2026-01-02", "2026-01-01"), "2 known differences ignored, the first until 2026-01-01."),
        (tell_ignored("2026-01-01", ""), "2 known differences ignored, until 2026-01-01."),
        (users(0), ""),
        (users(1), "Used by 1 resource: TLSEdge/e0."),
        (users(2), "Used by 2 resources: TLSEdge/e0, TLSEdge/e1."),
        (users(8)[-13:], ", TLSEdge/e7."),
        (users(9)[-13:], "TLSEdge/e7, …"),
        (users(1000)[:24], "Used by 1,000 resources:"),
        (users(1001)[:34], "Used by more than 1,000 resources:"),
        (tell_replacement(1), "must be replaced: f0 cannot be updated in place"),
        (tell_replacement(3), "must be replaced: f0, f1, f2 cannot be updated in place"),
        (tell_replacement(4), "must be replaced: f0, f1, f2 and 1 more field cannot be updated in place"),
        (tell_replacement(5), "must be replaced: f0, f1, f2 and 2 more fields cannot be updated in place"),
        (subjects(2), "BotUser/b0, BotUser/b1"),
        (subjects(3), "BotUser/b0, BotUser/b1 and 1 more"),
        (tell_sync(0, 0), "in sync (read now)"),
        (tell_sync(1, 0), "drift: 1 resource changed on the platform (read now)"),
        (tell_sync(2, 0), "drift: 2 resources changed on the platform (read now)"),
        (tell_sync(0, 1), "no drift: 1 resource changed in Git and is not applied yet (read now)"),
        (tell_sync(0, 2), "no drift: 2 resources changed in Git and are not applied yet (read now)"),
    ]


def test_a_sentence_has_the_number_of_its_nouns_and_verbs() -> None:
    found, expected = zip(*list_sentences(), strict=True)
    assert list(found) == list(expected)


# --- borders


class Cut(NamedTuple):
    """A list that is cut. `item`: an item in the text. `rest`: what says how many are left out, with one left."""

    name: str
    limit: int
    render: Callable[[int], str]
    item: str
    rest: str = r"([0-9,]+) more(?: (problem|row|object|line|finding)(s?))?\b"


def errors(number: int) -> tuple[Problem, ...]:
    return tuple(Problem(f"wrong-{place}", "", f"IPPolicy/p{place}", code="wrong-type") for place in range(number))


def health(number: int) -> tuple[HealthRow, ...]:
    return tuple(HealthRow(f"TLSEdge/x{place}", "", Health(State.DEGRADED, "broken")) for place in range(number))


def render(flavour: Flavour = Flavour.PLAN, **parts: object) -> str:
    return text.render_text(Plan("prod", **parts), width=200, flavour=flavour)  # type: ignore[arg-type]


def list_of(number: int) -> list[findings.Finding]:
    return findings.list_findings(Plan("prod", problems=errors(number)))


def render_removal(number: int) -> str:
    value = "".join(f"line-{place}\n" for place in range(number))
    fields = (FieldChange("description", value, None, ChangedBy.GIT),)
    return render(changes=(Change(Address("IPPolicy", "a"), Action.UPDATE, Reason.FIELDS, fields=fields),))


def tell_causes(number: int) -> str:
    (entry,) = make_openings(1)
    causes = tuple(f"IPPolicyRule/x{place}" for place in range(number))
    (found,) = rows(access=(replace(entry, causes=causes),)).access
    return "".join(phrases.explain_access(found))


CUTS = [
    Cut("problems of a text", 100, lambda n: render(problems=errors(n)), r"wrong-\d+"),
    Cut("entry points of a text", 50, lambda n: render(access=make_openings(n)), r"https://e\d+\."),
    Cut("entry points of a row", 4, lambda n: render(access=make_openings(n, apart=False)), r"https://e\d+\."),
    Cut("health of a text", 100, lambda n: render(Flavour.DRIFT, health=health(n)), r"TLSEdge/x\d+"),
    Cut("lines of a removed text", 8, render_removal, r"line-\d+"),
    Cut("causes of an entry point", 3, tell_causes, r"IPPolicyRule/x\d+"),
    Cut("commands of GitHub", 200, lambda n: ci_annotations.render_github(list_of(n)), r"wrong-\d+"),
    Cut("problems of a base", 10, lambda n: render(base=Base("main", "c0ffee1", problems=errors(n))), r"wrong-\d+"),
    Cut(
        "drifted resources of a status",
        10,
        lambda n: status.render_text(
            build_status(sync=Sync(Synced.DRIFT, NOW, drifted=tuple(f"IPPolicy/p{place}" for place in range(n)))), 999
        ),
        r"IPPolicy/p\d+",
    ),
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.name)
def test_a_list_is_cut_at_its_limit_and_the_rest_is_counted(cut: Cut) -> None:
    for number in (1, cut.limit - 1, cut.limit, cut.limit + 1, cut.limit + 2):
        found = cut.render(number)
        number_of_items = len(set(re.findall(cut.item, found)))
        more = re.findall(cut.rest, found)
        if number <= cut.limit:
            assert (number_of_items, more) == (number, []), number
            continue
        ((left, noun, plural),) = more
        assert number_of_items + int(left) == number, number
        assert number_of_items <= cut.limit
        assert not noun or bool(plural) is (left != "1"), found[-200:]


# --- a fleet


def letters(number: int) -> str:
    """A word for a number: numbers in reasons are left out."""
    return "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


def fleet_of_shapes(number: int) -> RollUp:
    digests = [f"{place:012x}" for place in range(1, number + 1)]
    tasks = [replace(task(place), shape=digest) for place, digest in enumerate(digests, 1)]
    return roll_up(tasks, ENDED, shapes={digest: replace(SHAPES[PLAIN], digest=digest) for digest in digests})


def fleet_of_reasons(number: int) -> RollUp:
    places = range(1, number + 1)
    return roll_up([replace(task(place, FAILED), reason=f"because-{letters(place)}") for place in places], ENDED)


def fleet_of_ill(number: int) -> RollUp:
    places = range(1, number + 1)
    return roll_up([with_health(place, replace(DNS, reason=f"because-{letters(place)}")) for place in places], JUDGED)


def fleet_of_changes(number: int) -> RollUp:
    edges = [Change(Address("TLSEdge", f"e{place}"), Action.CREATE, Reason.DECLARED) for place in range(number)]
    shape = replace(SHAPES[PLAIN], plan=plan_json.write_plan(Plan("base", changes=tuple(edges))))
    return roll_up([task(1)], ENDED, shapes={PLAIN: shape})


def fleet_of_fields(number: int) -> RollUp:
    fields = tuple(FieldChange(f"field_{place}", None, "x", ChangedBy.GIT) for place in range(number))
    edge = Change(Address("TLSEdge", "e"), Action.CREATE, Reason.DECLARED, fields=fields)
    return roll_up(
        [task(1)],
        ENDED,
        shapes={PLAIN: replace(SHAPES[PLAIN], plan=plan_json.write_plan(Plan("base", changes=(edge,))))},
    )


FLEET_REST = r"([0-9]+) more(?: (shape|reason|row|change)(s?))?\b"
FLEET_CUTS = [
    Cut("shapes of a text", 20, lambda n: fleet_text.render_text(fleet_of_shapes(n)), r"^Shape [0-9a-f]{12}"),
    Cut(
        "shapes of a comment",
        30,
        lambda n: fleet_markdown.render_markdown(fleet_of_shapes(n)),
        r"^\| `[0-9a-f]{12}`",
    ),
    Cut("reasons of a text", 20, lambda n: fleet_text.render_text(fleet_of_reasons(n)), r"because-[a-j]+"),
    Cut("reasons of a comment", 20, lambda n: fleet_markdown.render_markdown(fleet_of_reasons(n)), r"because-[a-j]+"),
    Cut("health of a text", 20, lambda n: fleet_text.render_text(fleet_of_ill(n)), r"because-[a-j]+"),
    Cut("health of a comment", 20, lambda n: fleet_markdown.render_markdown(fleet_of_ill(n)), r"because-[a-j]+"),
    Cut("changes of a shape", 12, lambda n: fleet_text.render_text(fleet_of_changes(n)), r"TLSEdge/e\d+"),
    Cut("fields of a change", 3, lambda n: fleet_text.render_text(fleet_of_fields(n)), r"field_\d+"),
]


@pytest.mark.parametrize("cut", FLEET_CUTS, ids=lambda cut: cut.name)
def test_a_list_of_a_fleet_is_cut_at_its_limit_and_the_rest_is_counted(cut: Cut) -> None:
    for number in (1, cut.limit - 1, cut.limit, cut.limit + 1, cut.limit + 2):
        found = cut.render(number)
        number_of_items = len(set(re.findall(cut.item, found, re.MULTILINE)))
        more = re.findall(FLEET_REST, found)
        assert number_of_items == min(number, cut.limit), (number, found)
        left = number - cut.limit
        assert [(int(count), noun == "" or bool(plural) is (left != 1)) for count, noun, plural in more] == (
            [(left, True)] if left > 0 else []
        )


@pytest.mark.parametrize(
    ("run", "seconds"),
    [(ENDED, 75.0), (RUN, 90.0), (replace(RUN, created=NOON + 100), 0.0)],
    ids=["ended", "open", "early"],
)
def test_a_run_lasts_until_its_end_or_until_now(run: Run, seconds: float) -> None:
    assert roll_up([task(1)], run, now=NOON + 90).seconds == seconds


@pytest.mark.parametrize(("alive", "is_silent"), [(30.0, False), (29.9, True), (90.0, False), (None, False)])
def test_a_member_is_silent_after_a_minute_without_a_heartbeat(alive: float | None, is_silent: bool) -> None:
    running = replace(task(1, TaskState.RUNNING), alive=None if alive is None else NOON + alive)
    expected = (("shop-1", NOON + (alive or 0.0)),) if is_silent else ()
    assert roll_up([running], RUN, now=NOON + 90).silent == expected
    assert roll_up([running], ENDED, now=NOON + 90).silent == ()


def test_a_shape_has_the_changes_of_one_member_although_the_first_failed() -> None:
    failed = replace(task(1, FAILED), shape="0" * 12)
    seen = roll_up([failed, replace(task(2), shape="0" * 12, counts={"update": 3})], APPLY)
    (shape,) = seen.shapes
    assert (shape.actions, shape.members, seen.actions) == ({"update": 3}, 2, {"update": 3})


@pytest.mark.parametrize(("verb", "number"), [(RunVerb.PLAN, 1), (RunVerb.APPLY, 1), (RunVerb.DRIFT, 0)])
def test_only_drift_needs_no_approval(verb: RunVerb, number: int) -> None:
    (shape,) = roll_up([task(8, digest=WIDE)], replace(ENDED, verb=verb)).shapes
    assert len(shape.needs) == number


def test_the_command_that_applies_a_plan_names_at_most_three_shapes() -> None:
    digests = [f"{place:012x}" for place in range(1, 6)]
    tasks = [replace(task(place, digest=WIDE), shape=digest) for place, digest in enumerate(digests, 1)]
    for number in (1, 3, 4):
        shapes = {digest: replace(SHAPES[WIDE], digest=digest) for digest in digests[:number]}
        seen = roll_up(tasks[:number], ENDED, shapes=shapes)
        ((_, command),) = fleet_phrases.next_commands(seen)
        assert command.split()[4:] == [part for digest in digests[: min(number, 3)] for part in ("--approve", digest)]


@pytest.mark.parametrize(
    ("states", "worst"),
    [("succeeded skipped", "skipped"), ("skipped waiting", "waiting"), ("waiting running", "running"),
     ("running stale", "stale"), ("stale blocked", "blocked"), ("blocked failed", "failed")],
)  # fmt: skip
def test_a_member_has_the_worst_state_of_its_tasks(states: str, worst: str) -> None:
    for names in (states.split(), states.split()[::-1]):
        tasks = [replace(task(1, TaskState(name)), project=str(place)) for place, name in enumerate(names)]
        assert roll_up(tasks, RUN).states == {worst: 1}
