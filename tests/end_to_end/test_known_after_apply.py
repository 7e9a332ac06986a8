"""Values that only the platform can say, used by other resources in the same apply."""

from __future__ import annotations

from tests.end_to_end.project import Project, resource
from tests.platform import Sandbox


def test_an_address_goes_into_the_hostports_of_an_edge_once_it_is_known(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(
        resource("TCPEdge", "ssh", hostports=["${{ ReservedAddress/ssh.addr }}"]),
        resource("ReservedAddress", "ssh", region="eu"),
    )
    planned = on_sandbox("plan")
    assert "+ hostports: [(known after apply: ReservedAddress/ssh.addr)]" in planned.out.replace("\n", " ")
    assert on_sandbox("apply", "-y", "--quiet").out == "Applied: 2 created.\n"
    (address,) = sandbox.get("/reserved_addrs")["reserved_addrs"]
    (edge,) = sandbox.get("/edges/tcp")["tcp_edges"]
    assert edge["hostports"] == [address["addr"]]
    assert on_sandbox("plan", "--detailed-exitcode").code == 0


def test_an_address_that_is_made_anew_takes_its_edge_along(on_sandbox: Project, sandbox: Sandbox) -> None:
    edge = resource("TCPEdge", "ssh", hostports=["${{ ReservedAddress/ssh.addr }}"])
    on_sandbox.declare(edge, resource("ReservedAddress", "ssh", region="eu"))
    on_sandbox("apply", "-y")
    (old,) = sandbox.get("/reserved_addrs")["reserved_addrs"]
    on_sandbox.declare(edge, resource("ReservedAddress", "ssh", region="jp"))
    sandbox.forget_log()
    assert on_sandbox("apply", "-y", "--quiet", "--allow", "delete:ReservedAddress=1").code == 0
    (new,) = sandbox.get("/reserved_addrs")["reserved_addrs"]
    (moved,) = sandbox.get("/edges/tcp")["tcp_edges"]
    assert sandbox.calls() == [
        "POST /reserved_addrs",
        f"PATCH /edges/tcp/{moved['id']}",
        f"DELETE /reserved_addrs/{old['id']}",
    ]
    assert moved["hostports"] == [new["addr"]] != [old["addr"]]
