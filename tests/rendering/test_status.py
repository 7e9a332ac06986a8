"""The state of a stack as text, Markdown, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.model.health import Actor, State
from reconciler.model.status import Due, Sync, Synced
from reconciler.rendering import status as rendering
from reconciler.rendering.html.status_page import render_page
from tests.harness.golden import compare_golden
from tests.harness.statuses import DAY, NOW, build_status, row
from tests.rendering.html_outline import outline

ILL = build_status(
    row("shop", State.DEGRADED, "the certificate waits for DNS", Actor.ZONE_OWNER, "set shop.example.com CNAME x.test"),
    row("web", State.PROGRESSING, "the certificate is being obtained", Actor.PLATFORM),
    row("old", State.UNKNOWN, "the list of ReservedDomain could not be read"),
    row("good", State.HEALTHY),
    sync=Sync(Synced.DRIFT, NOW, drifted=("IPPolicy/office",), pending=("IPPolicy/new",)),
    dates=(Due(NOW + 3 * DAY, "TLSCertificate/shop", "expires"),),
)


def test_the_text_names_what_needs_a_person_first() -> None:
    assert rendering.render_text(ILL, 120) == (
        "Stack prod: https://api.example.com, 2026-06-01 12:00 UTC\n"
        "Sync: drift: 1 resource changed on the platform, 1 resource changed in Git and is not applied yet (read now)\n"
        "  changed on the platform: IPPolicy/office\n"
        "  not applied yet: IPPolicy/new\n"
        "Health: 1 degraded, 1 progressing, 1 unknown, 1 healthy\n"
        "\n"
        "Needs a person:\n"
        "! ReservedDomain/shop: the certificate waits for DNS\n"
        "    zone owner: set shop.example.com CNAME x.test\n"
        "\n"
        "Progressing:\n"
        "~ ReservedDomain/web: the certificate is being obtained\n"
        "    the platform acts\n"
        "\n"
        "Unknown:\n"
        "? ReservedDomain/old: the list of ReservedDomain could not be read\n"
        "\n"
        "In the next 30 days:\n"
        "  2026-06-04 12:00 UTC  TLSCertificate/shop expires\n"
    )


def test_unapplied_changes_in_git_are_no_drift() -> None:
    edited = build_status(sync=Sync(Synced.YES, NOW, pending=("IPPolicy/new", "IPPolicy/old")))
    assert rendering.describe_sync(edited) == "no drift: 2 resources changed in Git and are not applied yet (read now)"


THEN = Sync(Synced.YES, NOW - 2 * DAY, is_now=False, why="it was not read")


@pytest.mark.parametrize(
    ("sync", "text"),
    [
        (Sync(Synced.UNKNOWN, why="no API key"), "unknown: no API key, and no drift check is recorded"),
        (Sync(Synced.YES, NOW), "in sync (read now)"),
        (Sync(Synced.UNKNOWN, NOW, why="1 list failed"), "unknown (read now, not completely: 1 list failed)"),
        (Sync(Synced.DRIFT, NOW, drifted=("a", "b")), "drift: 2 resources changed on the platform (read now)"),
        (
            Sync(Synced.UNKNOWN, NOW, pending=("a",)),
            "no drift: 1 resource changed in Git and is not applied yet (read now)",
        ),
        (
            THEN,
            "in sync (last known from the drift check of 2026-05-30 12:00 UTC, 2 days ago: now it was not read)",
        ),
        (
            replace(THEN, at=NOW + 5),
            "in sync (last known from the drift check of 2026-06-01 12:00 UTC, less than a second ago: now it "
            "was not read)",
        ),
    ],
)
def test_sync_is_described_with_what_is_known(sync: Sync, text: str) -> None:
    assert rendering.describe_sync(build_status(sync=sync)) == text


@pytest.mark.parametrize(
    ("actor", "advice", "text"),
    [
        (Actor.NOBODY, "", ""),
        (Actor.NOBODY, "wait", "wait"),
        (Actor.YOU, "", "you act"),
        (Actor.YOU, "set it", "you: set it"),
        (Actor.AGENT, "", "the agent acts"),
    ],
)
def test_the_actor_is_named_with_what_to_do(actor: Actor, advice: str, text: str) -> None:
    assert rendering.describe_actor(row("shop", State.DEGRADED, "", actor, advice)) == text


def test_the_text_fits_a_narrow_terminal() -> None:
    assert max(map(len, rendering.render_text(ILL, 40).splitlines())) <= 40


def test_text_of_the_platform_has_no_effect_in_any_format() -> None:
    status = build_status(row("shop", State.DEGRADED, "<script>|\x1b[31m`[x](y)\n::error::", advice="<b>"))
    assert "\x1b" not in rendering.render_text(status, 80) + rendering.render_markdown(status)
    assert "<script>|" not in render_page(status)
    assert json.loads(rendering.render_json(status))["health"][0]["advice"] == "<b>"


def test_every_format_has_reasons_and_dates() -> None:
    for text in (rendering.render_markdown(ILL), render_page(ILL), rendering.render_json(ILL)):
        for part in (
            "the certificate waits for DNS",
            "zone owner",
            "IPPolicy/office",
            "TLSCertificate/shop",
            "expires",
        ):
            assert part in text


def test_health_has_the_number_of_objects_in_each_state_and_names_the_check_of_records() -> None:
    assert rendering.describe_health(ILL) == "1 degraded, 1 progressing, 1 unknown, 1 healthy"
    assert rendering.describe_health(replace(ILL, is_verified=True)).endswith("1 healthy, checked with name servers")
    assert rendering.describe_health(build_status()) == "no resource has health"


NAMES = tuple(f"IPPolicy/office-{number}" for number in range(12))
LARGE = replace(
    build_status(
        row("mail", State.PROGRESSING, "the certificate waits", Actor.YOU),
        row("shop", State.DEGRADED, "the certificate waits for DNS", Actor.ZONE_OWNER, "set shop.example.com CNAME x"),
        row("auth", State.DEGRADED, "the platform refuses it"),
        row("web", State.PROGRESSING, "the certificate is being obtained", Actor.PLATFORM),
        row("lost", State.UNKNOWN, actor=Actor.YOU, advice="read it again"),
        row("good", State.HEALTHY),
        sync=Sync(Synced.DRIFT, NOW, drifted=NAMES, pending=NAMES[:10], why="1 list could not be read"),
        dates=(Due(NOW + DAY, "Token/ci", "expires"), Due(NOW + 3 * DAY, "TLSCertificate/shop", "expires")),
    ),
    environment="prod",
    is_verified=True,
)
SMALL = build_status(sync=Sync(Synced.YES, NOW - 2 * DAY, is_now=False, pending=NAMES[:1], why="unknown: no API key"))
FORMATS: Mapping[str, Callable[[], str]] = {
    "text-20": lambda: rendering.render_text(LARGE, 20),
    "text-40": lambda: rendering.render_text(LARGE, 40),
    "text-100": lambda: rendering.render_text(LARGE, 100),
    "markdown": lambda: rendering.render_markdown(LARGE),
    "json": lambda: rendering.render_json(LARGE),
    "page": lambda: outline(render_page(LARGE)),
    "small": lambda: rendering.render_text(SMALL, 60) + rendering.render_markdown(SMALL) + outline(render_page(SMALL)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_status_with_rows_of_every_sort_is_rendered(name: str) -> None:
    compare_golden(Path(__file__).parent / "pages" / "status" / f"{name}.txt", FORMATS[name]())


@pytest.mark.parametrize(("number", "ending"), [(9, "office-8"), (10, "office-9"), (11, "office-9 and 1 more")])
def test_ten_resources_that_differ_are_named(number: int, ending: str) -> None:
    status = build_status(sync=Sync(Synced.DRIFT, NOW, drifted=NAMES[:number]))
    assert rendering.render_text(status, 400).splitlines()[2].endswith(ending)
