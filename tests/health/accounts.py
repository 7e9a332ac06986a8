"""What tests of health share: facts about a few objects, at a fixed time, and objects of any shape."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from reconciler.health.facts import Facts
from reconciler.model.health import Health
from reconciler.model.snapshot import Listing, Live, Snapshot

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def moment(**later: float) -> str:
    """A timestamp as responses have it: this much later than `NOW`."""
    return (NOW + timedelta(**later)).isoformat().replace("+00:00", "Z")


def build_facts(
    objects: Mapping[str, Collection[Mapping[str, Any]]], unread: Collection[str] = (), days: float = 0
) -> Facts:
    """The objects of an account by kind, `days` after `NOW`. All lists are complete, but for those of `unread`."""
    from reconciler import kinds
    from reconciler.kinds import read_only

    names = {kind.name for kind in (*kinds.list_planned(), *read_only.KINDS)}
    listings = {
        name: Listing(tuple(_build_live(name, body) for body in objects.get(name, ())), name not in unread)
        for name in sorted(names)
    }
    return Facts(Snapshot(listings), (NOW + timedelta(days=days)).timestamp())


def _build_live(name: str, body: Mapping[str, Any]) -> Live:
    from reconciler import kinds

    kind = kinds.find(name)
    key, parent = ("id", None) if kind is None else (kind.key, kind.parent)
    return Live(name, str(body.get(key)), body, str(body.get(parent.field)) if parent is not None else None)


def judge_first(facts: Facts, kind: str) -> Health | None:
    """The health of the first object of a kind."""
    return facts.judge(facts.snapshot.of(kind).objects[0])


WORDS = (
    *("DNS_ERROR", "INTERNAL_ERROR", "app.example.com", "app.example.com:443", "*.example.com", "upstream", "", "shop"),
    *("cert_1", "rd_1", "bkdfo_1", "bkdtg_1", "bot_1", "bot_2", "tn_1", "ts_1", "https://[", "\ud800", "*", "_"),
    *("internal", "kubernetes", "forward-internal", "custom-response", "https://a.internal", "https://${x}.internal"),
    *(moment(days=days) for days in (-400, -2, 3, 90)),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01"),
)

any_text = st.sampled_from(WORDS) | st.text(max_size=4)
any_scalar = st.none() | st.booleans() | st.integers() | st.floats() | any_text


def any_json(keys: Collection[str]) -> st.SearchStrategy[Any]:
    """Any JSON value whose objects have some of these keys."""
    names = st.sampled_from(sorted(keys)) | st.text(max_size=3)
    return st.recursive(
        any_scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
    )
