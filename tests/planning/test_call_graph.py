"""References between live objects: by id, by host name and to the parent."""

from __future__ import annotations

from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.ordering.call_graph import find_live_edges, index_live_hosts
from tests.harness.builders import KINDS, live, manifest, snapshot


def test_live_objects_refer_by_id_by_host_name_and_to_their_parent() -> None:
    live_objects = [
        live("ReservedDomain", "rd_1", {"domain": "a.x"}),
        live("ReservedAddress", "ra_1", {"addr": "1.tcp.example.net:20000"}),
        live("IPPolicy", "ipp_1"),
        live("HTTPSEdge", "e_1", {"hostports": ["A.x:443", "1.tcp.example.net:20000", "b.x:443"]}),
        live(
            "HTTPSEdgeRoute",
            "r_1",
            {"ip_restriction": {"ip_policies": [{"id": "ipp_1"}, {"id": "ipp_2"}]}},
            parent="e_1",
        ),
        live("CloudEndpoint", "ep_1", {"url": "https://a.x"}),
        # Its rules mention a domain, but it does not serve the traffic of that domain.
        live("TunnelCredential", "cr_1", {"acl": ["bind:a.x"]}),
    ]
    index = LiveIndex.of(manifest(), snapshot(*live_objects), KINDS)
    assert sorted(set(find_live_edges(index))) == [
        (("CloudEndpoint", "ep_1"), "url", ("ReservedDomain", "rd_1")),
        (("HTTPSEdge", "e_1"), "hostports", ("ReservedAddress", "ra_1")),
        (("HTTPSEdge", "e_1"), "hostports", ("ReservedDomain", "rd_1")),
        (("HTTPSEdgeRoute", "e_1/r_1"), "edge_id", ("HTTPSEdge", "e_1")),
        (("HTTPSEdgeRoute", "e_1/r_1"), "ip_restriction", ("IPPolicy", "ipp_1")),
    ]
    assert list(index_live_hosts(index).holders("a.x")) == [("ReservedDomain", "rd_1")]
