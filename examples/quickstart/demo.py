"""Runs plan, apply, drift, replacement and destroy against a local sandbox, and fails if a step has another result.

    python examples/quickstart/demo.py [FOLDER]

Works on a copy of this project in a temporary directory. With FOLDER, the pages that it writes are kept there, and the
whole output of each command, of which the terminal shows the first and the last lines.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import certificates
import httpx

HERE = Path(__file__).parent
LOG = "commands.log"  # in the folder of pages
COMMAND = (sys.executable, "-m", "reconciler")
KEY = "sandbox"
FIRST, LAST = 24, 10  # lines of the output of a command that are shown
FEW = 8  # lines between them that are shown too
COLOR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


class UnexpectedResult(Exception):
    pass


def expect(condition: object, expectation: str) -> None:
    if not condition:
        raise UnexpectedResult(expectation)


class Demo:
    """Runs commands on a project, sends requests to its platform, and prints both."""

    def __init__(self, project: Path, base_url: str, pages: Path) -> None:
        self.project = project
        self.pages = pages
        (pages / LOG).unlink(missing_ok=True)
        self._environ = {
            **os.environ,
            "RECONCILER_BASE_URL": base_url,
            "RECONCILER_API_KEY": KEY,
        }
        headers = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=60)
        self._step = 0

    def start_step(self, title: str) -> None:
        self._step += 1
        self.print(f"\n=== {self._step}. {title}", "1;36")

    def print(self, text: str, color: str = "0") -> None:
        print(f"\x1b[{color}m{text}\x1b[0m" if COLOR else text, flush=True)

    def reconciler(self, *arguments: str, exit_code: int = 0) -> str:
        """Runs a command, prints the first and the last lines of its output, and returns all of it."""
        self.print(f"\n$ reconciler {' '.join(arguments)}", "1")
        output: list[str] = []
        with subprocess.Popen(
            [*COMMAND, *arguments, "--project", str(self.project)],
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if len(output) < FIRST:
                    print(line, end="", flush=True)
                output.append(line)
        self._print_end(output)
        with (self.pages / LOG).open("a") as log:
            log.writelines([f"$ reconciler {' '.join(arguments)}\n", *output, "\n"])
        self.print(f"(exit {process.returncode})", "2")
        expect(
            process.returncode == exit_code,
            f"`reconciler {' '.join(arguments)}` exits {exit_code}, not {process.returncode}",
        )
        return "".join(output)

    def _print_end(self, output: list[str]) -> None:
        more = len(output) - FIRST - LAST
        is_cut = more > FEW
        if is_cut:
            self.print(f"  … {more} more lines in {LOG}", "2")
        print(*output[max(FIRST, len(output) - LAST) if is_cut else FIRST :], sep="", end="", flush=True)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Sends a request outside reconciler, as a person or another tool would."""
        self.print(f"# outside Git: {method} {path}{'' if body is None else f' {body}'}", "33")
        return self._send(method, path, body)

    def get(self, path: str) -> Any:
        return self._send("GET", path, None)

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        answer = self._http.request(method, path, json=body)
        expect(answer.is_success, f"{method} {path} works, instead of {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def changes_since(self, start: int) -> list[tuple[str, str]]:
        """Method and path of each mutating request that the platform received after number `start`, in order."""
        log = self.get(f"/_sandbox/requests?since={start}")["requests"]
        return [(entry["method"], entry["path"]) for entry in log if entry["method"] != "GET"]

    def last_request(self) -> int:
        log = self.get("/_sandbox/requests?since=0")["requests"]
        return max((entry["sequence"] for entry in log), default=0)

    def edit(self, file: str, old: str, new: str) -> None:
        self.print(f"# in Git: {file}: {old.strip()!r} → {new.strip()!r}", "33")
        path = self.project / file
        text = path.read_text()
        expect(text.count(old) == 1, f"{file} holds {old!r} once")
        path.write_text(text.replace(old, new))


def find(objects: list[Any], **fields: str) -> Any:
    matches = [item for item in objects if all(item.get(name) == value for name, value in fields.items())]
    expect(len(matches) == 1, f"one object has {fields}, not {len(matches)}")
    return matches[0]


def run(demo: Demo) -> None:
    demo.start_step("Create two objects outside Git")
    policy = demo.request("POST", "/ip_policies", {"description": "created outside Git"})
    robot = demo.request("POST", "/bot_users", {"name": "created outside Git"})
    before = {policy["id"]: policy, robot["id"]: robot}

    demo.start_step("Plan: create all resources, in the order of their references")
    forms = [f"{form}={demo.pages / name}" for form, name in (("markdown", "plan.md"), ("html", "plan.html"))]
    words = [word for form in ("text", *forms) for word in ("--format", form)]
    plan = demo.reconciler("plan", "--detailed-exitcode", *words, exit_code=2)
    expect(" to create" in plan, "the plan counts what it will create")
    expect("known after apply" in (demo.pages / "plan.md").read_text(), "the page for a review has the fields")

    demo.start_step("Apply, then plan again: no changes")
    demo.reconciler("apply", "--auto-approve", "--quiet")
    token = demo.project / "secrets" / "ci-agent.token"
    expect(token.stat().st_mode & 0o777 == 0o600, "the file of the one-time token can be read by its owner only")
    start = demo.last_request()
    demo.reconciler("plan", "--detailed-exitcode")
    demo.reconciler("apply", "--auto-approve")
    expect(demo.changes_since(start) == [], "a second apply sends no mutating call")

    demo.start_step("Drift: the account is changed outside Git")
    edge = find(demo.get("/edges/tls")["tls_edges"])
    backend = find(demo.get("/backends/failover")["backends"])
    nightly = find(demo.get("/bot_users")["bot_users"], name="nightly")
    demo.request("PATCH", f"/backends/failover/{backend['id']}", {"description": "edited in the dashboard"})
    demo.request("DELETE", f"/edges/tls/{edge['id']}/ip_restriction")
    demo.request("DELETE", f"/bot_users/{nightly['id']}")
    drift = demo.reconciler("drift", "--record", exit_code=2)
    expect("changed on the platform" in drift, "drift attributes the changes to the platform")
    expect("changed in Git" not in drift, "drift attributes nothing to Git")
    expect("deleted on the platform" in drift, "drift reports the deleted bot user")
    opened = "Access was widened on the platform: tls://payments.example.com"
    expect(opened in drift, "drift begins with the edge that anyone with a certificate can reach")
    expect("for example: tls://payments.example.com from 192.0.2.1" in drift, "drift names such a request")

    demo.start_step("Apply reverts the drift")
    demo.reconciler("apply", "--auto-approve", "--quiet")
    demo.reconciler("plan", "--detailed-exitcode")

    demo.start_step("Replace a certificate authority: create the new one, update the edge, delete the old one")
    certificates.write_authority(demo.project / "pki")
    start = demo.last_request()
    demo.reconciler("apply", "--auto-approve")
    calls = [(method, path.split("/")[1]) for method, path in demo.changes_since(start)]
    order = [("POST", "certificate_authorities"), ("PATCH", "edges"), ("DELETE", "certificate_authorities")]
    expect([call for call in calls if call in order] == order, f"the calls come in that order, not {calls}")

    demo.start_step("Remove a module from the YAML: the plan says who gets in, the apply deletes the module")
    demo.edit(
        "manifests/edges.yaml",
        "  ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}, {ref: IPPolicy/partners}]}\n",
        "",
    )
    plan = demo.reconciler("plan")
    expect("tls://payments.example.com lets in requests that were refused" in plan, "the plan names the opening")
    expect("for example: tls://payments.example.com from 192.0.2.1" in plan, "the plan has a request that gets in")
    start = demo.last_request()
    demo.reconciler("apply", "--auto-approve", "--quiet")
    expect(("DELETE", f"/edges/tls/{edge['id']}/ip_restriction") in demo.changes_since(start), "the module is deleted")

    demo.start_step("The objects created outside Git are unchanged")
    expect(demo.get(f"/ip_policies/{policy['id']}") == before[policy["id"]], "the IP policy is unchanged")
    expect(demo.get(f"/bot_users/{robot['id']}") == before[robot["id"]], "the bot user is unchanged")
    demo.print("Both are unchanged.", "32")

    demo.start_step("Destroy: only what the stack manages; irreversible deletions need approval")
    demo.reconciler("destroy", "--auto-approve", exit_code=4)
    approvals = ("delete:ReservedDomain=3", "delete:ReservedAddress=1", "delete:AgentIngress=1", "delete:BotUser=3")
    demo.reconciler(
        "destroy", "--auto-approve", "--quiet", *(word for approval in approvals for word in ("--allow", approval))
    )
    left = [*demo.get("/ip_policies")["ip_policies"], *demo.get("/bot_users")["bot_users"]]
    expect({item["id"] for item in left} == before.keys(), "only the objects created outside Git remain")
    expect(demo.get("/edges/tls")["tls_edges"] == [], "no edge remains")

    demo.start_step("Report: drift and runs over time")
    demo.reconciler("report", "--out", str(demo.pages / "report.html"))
    report = (demo.pages / "report.html").read_text()
    expect("3 resources differed" in report, "the report shows the drift")
    expect("Repaired since the last drift check" in report, "the report shows that the applies repaired it")


def list_pages(pages: Path) -> Iterator[str]:
    yield "\nPages:"
    for name, description in (
        ("plan.md", "the first plan, as a comment in a review"),
        ("plan.html", "the same as a page, with every way in and the dependency graph"),
        ("report.html", "drift and runs over time"),
        (LOG, "the whole output of the commands"),
    ):
        yield f"  {pages / name}  {description}"


@contextmanager
def sandbox(directory: Path) -> Iterator[str]:
    """Runs a sandbox on a free loopback port and yields its base URL."""
    process = subprocess.Popen(
        [*COMMAND, "sandbox", "--port", "0", "--db", str(directory / "platform.db"), "--api-key", KEY],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=10)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="reconciler-demo-") as temporary:
        directory = Path(temporary)
        project = directory / "project"
        shutil.copytree(HERE, project, ignore=shutil.ignore_patterns("pki", "secrets", "state", "__pycache__"))
        certificates.write_all(project / "pki")
        with sandbox(directory) as base_url:
            pages = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else directory / "pages"
            pages.mkdir(parents=True, exist_ok=True)
            demo = Demo(project, base_url, pages)
            try:
                run(demo)
                if pages.parent != directory:
                    for line in list_pages(pages):
                        demo.print(line)
                demo.print("\nAll steps passed.", "1;32")
            except UnexpectedResult as error:
                demo.print(f"\nFailed: expected that {error}.", "1;31")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
