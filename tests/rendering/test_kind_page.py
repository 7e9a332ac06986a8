"""The documentation pages of the kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.kind import Kind, Parent
from reconciler.rendering.reference import kind_page
from tests.harness.golden import compare_golden
from tests.rendering.made_up_kinds import KINDS, SILENT, WHOLE

EVERY = kinds.every()


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_a_page_names_every_field_and_output(kind: Kind) -> None:
    page = kind_page.page(kind)
    for name in (*kind.by_name, *kind.outputs):
        assert f"`{name}`" in page


def test_the_index_links_to_every_page() -> None:
    index = kind_page.index(EVERY)
    assert [kind.name for kind in EVERY if f"[{kind.name}]({kind.name}.md)" not in index] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("CloudEndpoint", "- Replaced when the scheme of `url` changes."),
        ("TLSEdge", "- Never replaced: every field can be updated in place."),
        ("IPPolicyRule", "- Replaced when `ip_policy_id` or `action` changes."),
        ("ReservedDomain", "- Deletion is irreversible, since another account may reserve it; it needs approval."),
        (
            "BotUser",
            "- Without an owner record it is identified by `name`; adopting it needs approval if a field would change.",
        ),
        (
            "EventSource",
            "- Without an owner record it is identified by `subscription_id` and `type`; adopting it needs approval, "
            "unless its `EventSubscription` is managed by the stack.",
        ),
        ("BotUser", "- It has no metadata: ownership is recorded in the local store, or is that of its parent."),
    ],
)
def test_a_page_documents_what_forces_a_replacement_and_special_rules(name: str, line: str) -> None:
    assert line in kind_page.page(kinds.get(name)).splitlines()


def test_a_one_time_output_is_not_offered_for_reference() -> None:
    page = kind_page.page(kinds.get("TunnelCredential"))
    assert "Other resources may refer to `id`, `uri` and `created_at`." in page
    assert "`token` is returned once" in page


def test_the_page_of_a_kind_with_every_trait_is_written_as_reviewed() -> None:
    below = replace(WHOLE, part_of=Parent("TLSEdge", "edge_id"), one_time=None, unique=False)
    pages = [kind_page.page(kind) for kind in (*KINDS.values(), SILENT, below)]
    pages += [kind_page.index([WHOLE, *KINDS.values()])]
    compare_golden(Path(__file__).parent / "pages" / "kind-pages.md", "\n----\n".join(pages))
