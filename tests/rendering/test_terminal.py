"""What `explain` and `kinds` print about a kind and its fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reconciler import kinds
from reconciler.model.fields.field import Field
from reconciler.rendering.reference import terminal
from tests.harness.golden import compare_golden
from tests.rendering.made_up_kinds import KINDS, PLAIN, WHOLE


def list_fields(fields: tuple[Field, ...], above: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = f"{above}{field.name}"
        yield path, field
        yield from list_fields(field.fields or (field.item.fields if field.item else ()), f"{path}.")


def test_kinds_and_fields_with_every_trait_are_explained() -> None:
    pages = [
        f"{name}, {width} cells:\n{terminal.page(kind, width)}"
        for name, kind in KINDS.items()
        for width in (20, 40, 100)
    ]
    fields = list(list_fields(WHOLE.fields))
    pages += [terminal.field_page(WHOLE, path, field, width) for path, field in fields for width in (17, 30, 100)]
    pages += [terminal.listing([WHOLE, PLAIN])]
    compare_golden(Path(__file__).parent / "pages" / "explain.txt", "\n----\n".join(pages) + "\n")


def test_no_line_about_a_kind_is_longer_than_the_terminal() -> None:
    for kind in kinds.every():
        for width in (60, 80):
            pages = [terminal.page(kind, width)]
            pages += [terminal.field_page(kind, path, field, width) for path, field in list_fields(kind.fields)]
            assert max(len(line) for page in pages for line in page.splitlines()) <= width
