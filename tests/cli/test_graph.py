"""`graph`: the resources of the manifests and their references."""

from __future__ import annotations

from tests.harness.project import Output, Shell


def test_graph_draws_the_manifests(shell: Shell) -> None:
    assert shell("graph", "--format", "mermaid") == Output(
        0,
        """\
flowchart LR
  n1["IPPolicy<br/>office"]
  n2["ReservedDomain<br/>pay"]
  n3["TLSEdge<br/>payments"]
  n1 --> n3
  n2 --> n3
""",
        "",
    )
