"""docs/health.md: its commands print the output on the page, the table has every kind, the figures are true."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from reconciler import kinds
from reconciler.testing import Sandbox
from tests.examples import transcripts
from tests.harness.name_server import free_port, name_server
from tests.harness.workspaces import open_on, policy, write_project

PAGE = Path(__file__).parents[2] / "docs/health.md"
PORT = "53535"  # of the name server on the page; each run uses a free port

PROJECT = """\
version: 1
stack: shop
platform: {base_url: http://127.0.0.1:4041, api_key: {from_env: RECONCILER_API_KEY}}
dns: {zones: [example.com]}
"""

MANIFESTS = """\
kind: ReservedDomain
name: shop
spec:
  domain: shop.example.com
  certificate_management_policy: {authority: letsencrypt}
---
kind: ReservedDomain
name: www
spec:
  domain: www.example.com
  certificate_management_policy: {authority: letsencrypt}
---
kind: TunnelGroupBackend
name: web
spec:
  labels: {app: web}
"""

BEFORE = f"""\
```console
$ export RECONCILER_API_KEY=sandbox
$ reconciler sandbox --port 4041 > sandbox.log &
$ cat > faults.json <<'END'
> {{"retry_after": 86400, "faults": [
>   {{"host": "shop.example.com", "error_code": "DNS_ERROR"}}, {{"host": "api.example.com", "delay": 6}}]}}
> END
$ type="Content-Type: application/json"
$ faults=http://127.0.0.1:4041/_sandbox/provisioning
$ curl --silent --output answer.json --request PUT --header "$type" --data "$(cat faults.json)" $faults
$ cat > reconciler.yaml <<'END'
> {"> ".join(PROJECT.splitlines(keepends=True))}> END
$ reconciler apply --auto-approve --quiet
Applied: 3 created.
```
"""

AFTER = """
```console
$ kill $!
```
"""


def test_the_commands_of_the_health_page_print_the_documented_output(
    tmp_path: Path, commands: Path, request: pytest.FixtureRequest
) -> None:
    page, port, zone = PAGE.read_text(encoding="utf-8"), free_port(), tmp_path / "zone"
    zone.write_text("shop.example.com. 60 IN CNAME old.example.net.\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/shop.yaml").write_text(MANIFESTS)
    whole = BEFORE + page + AFTER
    with name_server("127.0.0.1", port, {"example.com.": zone}):
        steps = transcripts.run(whole.replace(PORT, str(port)), tmp_path, commands)
    ran = transcripts.rewrite(whole.replace(PORT, str(port)), steps).replace(str(port), PORT)
    assert (ran.startswith(BEFORE), ran.endswith(AFTER)) == (True, True), ran
    ran = ran.removeprefix(BEFORE).removesuffix(AFTER)
    transcripts.compare(PAGE, ran, write=request.config.getoption("--rewrite"))


def test_the_table_has_every_kind_that_has_health() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## What healthy means")[2].partition("\n## ")[0]
    named = [name for line in table.splitlines() for name in re.findall(r"`([A-Z]\w+)`", line.partition(" | ")[0])]
    assert sorted(named) == sorted(kind.name for kind in kinds.list_planned() if kind.health is not None)


async def test_only_status_reads_more_lists_than_a_plan(tmp_path: Path) -> None:
    backend = {"kind": "TunnelGroupBackend", "name": "web", "spec": {"labels": {"app": "web"}}}
    with Sandbox() as sandbox:
        workspace = open_on(sandbox, write_project(tmp_path, backend, policy("office")))
        await workspace.apply()
        requests = {}
        for name, work in (("plan", workspace.plan), ("drift", workspace.drift), ("status", workspace.status)):
            sandbox.forget_log()
            await work()
            requests[name] = Counter(entry["path"].partition("?")[0] for entry in sandbox.log())
    assert requests["plan"] == requests["drift"]
    assert requests["status"] - requests["plan"] == Counter({"/tunnels": 1})
