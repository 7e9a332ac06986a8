"""The text of `explain Kind/name`: where each value comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.address import Address
from reconciler.model.change import ChangedBy
from reconciler.model.problem import Position
from reconciler.model.provenance import Origin, Trace
from reconciler.model.value import Hidden, Ref, Secret, Template
from reconciler.rendering import terminal_text
from reconciler.rendering.provenance import LiveValue, render_provenance
from tests.harness.golden import compare_golden

EDGE = Ref(Address("TLSEdge", "shop"))
AT = Position("manifests/shop.yaml", 3, 5)
ELSEWHERE = Position("environments/prod.yaml", 12, 1)
TRACES = (
    Trace(
        "tls_termination.min_version",
        "1.3",
        (
            Origin("environment prod", ELSEWHERE, "1.3"),
            Origin("variable version, from --var", None, "1.3", feeds=True),
            Origin("manifest", AT, "1.2", counts=False),
            Origin("default of the platform", None, None, counts=False),
        ),
    ),
    Trace("labels", {"a": [1, None, EDGE], "b": Secret("s3cret", "x"), "é": (Hidden(""), True)}, ()),
    Trace("", None, (Origin("manifest", AT, None, feeds=True), Origin("one\x1b[2J", None, ["x"], gist="a list of 1"))),
    Trace(
        "token",
        Hidden(""),
        (Origin("manifest", AT, Hidden("")), Origin("file", None, Secret("s3cret", "x"), feeds=True)),
    ),
    Trace("edge_id", EDGE, (Origin("manifest", AT, Template((EDGE, "-x"))),)),
)
LIVE = (LiveValue("1.1", ChangedBy.PLATFORM), LiveValue(["a"]), None, LiveValue(Hidden("")), LiveValue(None))


@pytest.mark.parametrize("width", [50, 100])
def test_values_have_the_places_that_they_come_from(width: int) -> None:
    traces = [trace if trace.origins else Trace(trace.path, trace.value, (Origin("x", None, 1),)) for trace in TRACES]
    text = render_provenance("TLSEdge/shop", traces, LIVE, width)
    assert "s3cret" not in text
    assert max(map(terminal_text.width, text.splitlines())) <= width
    compare_golden(Path(__file__).parent / "pages" / f"provenance-{width}.txt", text + "\n")


def test_each_value_has_its_value_on_the_platform() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_provenance("TLSEdge/shop", TRACES[:1], (), 80)
