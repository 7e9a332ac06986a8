"""The units, manifests and commands for clusters: Dask accepts their options and settings; the certificates work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
import yaml
from distributed.cli.dask_scheduler import main as scheduler_command
from distributed.cli.dask_worker import main as worker_command

from reconciler.fleet.dask_cluster import open_cluster_pool
from tests.fleet import stub_tasks
from tests.fleet.clusters import run_all, start_cluster
from tests.fleet.stub_tasks import make_task

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "fleet" / "cluster"
PAGE = ROOT / "docs" / "fleet-cluster.md"
OWN = ("RECONCILER_STORE", "RECONCILER_CACHE", "SHOP_KEY_BERLIN")


def check_command(words: list[str]) -> None:
    """Fails if Dask does not accept the options of a command."""
    program, name, *options = words
    assert Path(program).name == "dask"
    command = {"scheduler": scheduler_command, "worker": worker_command}[name]
    command.make_context(name, options)


def check_settings(settings: Iterable[tuple[str, str]]) -> None:
    """Fails if Dask does not have a setting, or if a connection without TLS is allowed."""
    own = {name: value for name, value in settings if not name.startswith("DASK_")}
    assert set(own) <= set(OWN)
    found = {name: value for name, value in settings if name.startswith("DASK_")}
    for name, value in flatten(dask.config.collect_env(found)):
        dask.config.get(name)
        assert not name.endswith("require_encryption") or value is True
    assert any("TLS__CA_FILE" in name for name in found)


def flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


@pytest.mark.parametrize("part", ["scheduler", "worker"])
def test_units_of_systemd_have_valid_commands_and_settings(part: str) -> None:
    unit = (EXAMPLES / "systemd" / f"reconciler-{part}.service").read_text().replace("\\\n", " ")
    command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert command is not None
    check_command(shlex.split(command[1]))
    assert f"EnvironmentFile=/etc/reconciler/{part}.env\n" in unit
    assert "Restart=always\n" in unit
    lines = (EXAMPLES / "systemd" / f"{part}.env").read_text().splitlines()
    check_settings([tuple(line.split("=", 1)) for line in lines if not line.startswith("#")])  # type: ignore[misc]


def test_manifests_of_kubernetes_have_valid_commands_and_settings() -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))
    assert [document["kind"] for document in documents] == [
        "Deployment", "Service", "Deployment", "CronJob", "NetworkPolicy",
    ]  # fmt: skip
    pods = [document["spec"]["template"]["spec"] for document in documents if document["kind"] == "Deployment"]
    job = documents[3]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for pod in (*pods, job):
        (container,) = pod["containers"]
        check_settings([(item["name"], item["value"]) for item in container["env"]])
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
    for pod in pods:
        check_command(pod["containers"][0]["command"])
    assert "reconciler fleet drift --scheduler tls://fleet-scheduler:8786" in job["containers"][0]["args"][0]
    assert documents[1]["metadata"]["name"] == "fleet-scheduler"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl")
async def test_certificates_of_the_page_are_accepted(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    tls = "distributed.comm.tls"
    settings = {f"{tls}.ca-file": str(tmp_path / "ca.pem"), "distributed.comm.require-encryption": True}
    for role in ("scheduler", "worker", "client"):
        settings |= {f"{tls}.{role}.cert": str(tmp_path / f"{role}.pem")}
        settings |= {f"{tls}.{role}.key": str(tmp_path / f"{role}-key.pem")}
    with dask.config.set(settings):
        async with (
            start_cluster({}, protocol="tls") as scheduler,
            open_cluster_pool(stub_tasks.work, scheduler.address) as pool,
        ):
            assert [end.error for end in await run_all(pool, [make_task(tmp_path, "member")])] == [""]


def make_certificates(folder: Path) -> None:
    """Runs the commands of the page."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (script,) = [block for block in blocks if "openssl req" in block]
    subprocess.run(["sh", "-e", "-c", script], cwd=folder, check=True, capture_output=True)
