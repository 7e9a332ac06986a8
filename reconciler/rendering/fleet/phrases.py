"""Sentences about a run over a fleet that several formats share. No layout: no width, color or markup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reconciler.model.change import Action, Risk
from reconciler.model.fleet import RunState, RunVerb
from reconciler.rendering.fleet.health import IllRow
from reconciler.rendering.fleet.openings import OpeningRow
from reconciler.rendering.fleet.rollup import ADDED, RollUp, ShapeRow
from reconciler.rendering.plan import access_drift
from reconciler.rendering.plan import phrases as plan_phrases
from reconciler.rendering.plan.health_section import describe_row
from reconciler.rendering.plan.outline import build_outline
from reconciler.rendering.plan.phrases import SEVERE, Flavour, RiskPhrase
from reconciler.rendering.terminal_text import ELLIPSIS, sanitize
from reconciler.rendering.text_tools import count, format_seconds, format_time

_FEW = 3  # names that a line lists
TITLES = {RunVerb.PLAN: "Plan of fleet", RunVerb.APPLY: "Apply to fleet", RunVerb.DRIFT: "Drift of fleet"}


def flavour(rollup: RollUp) -> Flavour:
    return Flavour.DRIFT if rollup.run.verb is RunVerb.DRIFT else Flavour.PLAN


def describe_states(states: Mapping[str, int]) -> str:
    """`790 succeeded, 8 failed`"""
    return ", ".join(f"{number} {state}" for state, number in states.items())


def describe_members(rollup: RollUp) -> str:
    """`800 members: 790 succeeded, 8 failed, 2 skipped.`"""
    states = describe_states(rollup.states)
    return f"{count(rollup.members, 'member')}: {states}." if states else "No member is selected."


def describe_changes(rollup: RollUp) -> str:
    """`Plan: 1580 to create, 790 to update, in 790 members.`; empty if no member succeeded."""
    if not (rollup.states.get("succeeded") or rollup.changed):
        return ""
    if rollup.run.verb is RunVerb.DRIFT:
        return f"Drift: {count(rollup.drifted, 'member')}." if rollup.drifted else "No drift."
    if not rollup.changed:
        return "No changes."
    within = f", in {count(rollup.changed, 'member')}"
    if rollup.run.verb is RunVerb.APPLY:
        done = ", ".join(
            f"{number} {Action(action).past}" for action, number in rollup.actions.items() if action != ADDED
        )
        return f"Applied: {done}{within}."
    return f"Plan: {describe_actions(rollup.actions)}{within}."


def describe_health(rollup: RollUp) -> str:
    """`Health: 214 members degraded, 3 healthy.`; empty if it was not judged."""
    health = rollup.health
    if health is None:
        return ""
    listed = ", ".join(
        f"{number if place else count(number, 'member')} {state}"
        for place, (state, number) in enumerate(health.states.items())
    )
    others = f" {count(health.left_out, 'member')} of the fleet not checked by this run." if health.left_out else ""
    return f"Health: {listed or 'no member was checked'}.{others}"


def describe_ill(ill: IllRow) -> str:
    """`degraded: ReservedDomain/shop: the certificate waits for DNS (you act: …)`"""
    row = ill.row
    return describe_row(row) if row.address else f"{row.health.state}: {row.health.reason}"


def explain_ill(ill: IllRow) -> Iterator[str]:
    """What the line of an object does not say."""
    if ill.exemplar:
        yield f"this is what to do in {sanitize(ill.exemplar)}; it differs in the others"


def describe_actions(actions: Mapping[str, int]) -> str:
    """`2 to create, 1 to update`"""
    return ", ".join(
        f"{number} added on the platform" if action == ADDED else f"{number} to {action}"
        for action, number in actions.items()
    )


def list_first(first: Sequence[str], total: int) -> str:
    """`shop-1, shop-2, shop-3, …`"""
    more = f", {ELLIPSIS}" if total > len(first) else ""
    return ", ".join(map(sanitize, first)) + more


def weigh_risks(row: ShapeRow) -> list[tuple[RiskPhrase, int]]:
    """Each risk of the exemplar with the number of changes that have it, the most severe first."""
    return [(RiskPhrase(risk.text, risk in SEVERE), row.risks[risk]) for risk in Risk if row.risks.get(risk)]


def describe_approval(row: ShapeRow) -> str:
    """Whether a shape is approved; empty if it needs no approval."""
    if not row.needs:
        return ""
    if row.approved:
        return "approved"
    return "approval required"


def describe_opening(rollup: RollUp, row: OpeningRow, quote: Callable[[str], str] = str) -> str:
    """`https://x is a new way in`; of drift `access was widened on the platform: https://x from … → …, because of …`"""
    if flavour(rollup) is Flavour.DRIFT:
        text = access_drift.describe(build_outline(rollup.plans[row.shapes[0]]), row.access, quote)
        return f"{text[0].lower()}{text[1:]}"
    return plan_phrases.describe_access(row.access, quote)


def explain_opening(rollup: RollUp, row: OpeningRow, quote: Callable[[str], str] = str) -> Iterator[str]:
    """Who gets through, an example and the causes, all with values of the exemplar, and the shapes."""
    access = row.access
    details = access_drift.explain if flavour(rollup) is Flavour.DRIFT else plan_phrases.explain_access
    yield from details(access, quote)
    if access.more:
        yield f"and {count(len(access.more), 'more entry point')}: {_list_some(access.more, quote)}"
    yield f"values of {quote(sanitize(row.exemplar))}; {'shape' if len(row.shapes) == 1 else 'shapes'} " + _list_some(
        row.shapes, quote
    )


def _list_some(texts: Sequence[str], quote: Callable[[str], str]) -> str:
    more = f" and {len(texts) - _FEW} more" if len(texts) > _FEW else ""
    return ", ".join(map(quote, texts[:_FEW])) + more


def approval_flag(row: ShapeRow) -> str:
    """`--approve 3f9a1c22b0de`"""
    return f"--approve {row.digest}"


def has_waves(rollup: RollUp) -> bool:
    """Whether waves are worth showing: more than one, or one that needs approval."""
    return len(rollup.waves) > 1 or any(row.approve for row in rollup.waves)


def describe_run(rollup: RollUp) -> Iterator[tuple[str, str]]:
    """What a header says of the run, label by label."""
    run = rollup.run
    known = (
        ("Run", run.id),
        ("Reviewed run", run.reviewed),
        ("Commit", run.commit[:12]),
        ("Started", format_time(run.created)),
        ("Started by", run.actor),
        ("Duration", format_seconds(rollup.seconds)),
        ("Requests", str(rollup.requests)),
    )
    yield from ((label, sanitize(text)) for label, text in known if text)


def describe_silent(rollup: RollUp) -> str:
    """`No heartbeat from m055 since 2026-11-26 17:00 UTC (5 min) and 4 more: …`; empty if every worker sends them."""
    silent = rollup.silent
    if not silent:
        return ""
    named = ", ".join(
        f"{sanitize(member)} since {format_time(alive)} ({format_seconds(rollup.at - alive)})"
        for member, alive in silent[:_FEW]
    )
    more = f" and {len(silent) - _FEW} more" if len(silent) > _FEW else ""
    return f"No heartbeat from {named}{more}: the worker hangs or died, or cannot reach the store"


def describe_end(rollup: RollUp) -> str:
    """Why the run failed, or that it waits; empty if it ended well, or goes on."""
    run = rollup.run
    if run.state is RunState.FAILED:
        return f"The run stopped: {sanitize(run.reason)}" if run.reason else "The run stopped."
    if rollup.wait is not None:
        return f"Waiting: {sanitize(rollup.wait.text)}"
    return ""


def next_commands(rollup: RollUp) -> Iterator[tuple[str, str]]:
    """What a person can do next, and the command for it."""
    run = rollup.run
    if rollup.wait is not None and rollup.wait.command:
        yield ("To approve the wave" if rollup.wait.wave else "To resume"), rollup.wait.command
    elif run.state is RunState.OPEN and rollup.ended_members < rollup.members:
        yield "To continue, if no process works on this run", f"reconciler fleet resume {run.id}"
    if run.state is RunState.OPEN:
        return
    if rollup.states.get("failed"):
        yield "To try failed members again", f"reconciler fleet retry {run.id} --only failed"
    elif rollup.states.get("skipped"):
        yield "To try skipped members again", f"reconciler fleet retry {run.id} --only skipped"
    if run.verb is RunVerb.PLAN and rollup.changed:
        flags = "".join(f" {approval_flag(row)}" for row in rollup.shapes_to_approve[:3])
        yield "To apply this plan", f"reconciler fleet apply {run.id}{flags}"
    elif run.verb is RunVerb.APPLY and rollup.states.get("stale"):
        yield "To plan again", "reconciler fleet plan"
