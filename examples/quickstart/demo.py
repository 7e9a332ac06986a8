"""Tells the product's story with real commands against an embedded sandbox, and fails where a step is not as told.

    python examples/quickstart/demo.py [FOLDER]

Works on a copy of this project in a temporary directory; nothing outside it changes, but that the pages which it writes
are left in FOLDER if one is named.
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
COMMAND = (sys.executable, "-m", "reconciler")
KEY = "sandbox"
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


class NotAsTold(Exception):
    pass


def must(holds: object, told: str) -> None:
    if not holds:
        raise NotAsTold(told)


class Story:
    """A project, the platform beside it, and what has been said so far."""

    def __init__(self, project: Path, base_url: str, pages: Path) -> None:
        self.project = project
        self.pages = pages
        self._environ = {**os.environ, "RECONCILER_BASE_URL": base_url, "RECONCILER_API_KEY": KEY}
        headers = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=60)
        self._chapter = 0

    def chapter(self, title: str) -> None:
        self._chapter += 1
        self.say(f"\n=== {self._chapter}. {title}", "1;36")

    def say(self, text: str, colour: str = "0") -> None:
        print(f"\x1b[{colour}m{text}\x1b[0m" if COLOUR else text, flush=True)

    def reconciler(self, *arguments: str, expect: int = 0) -> str:
        """Runs the command as a person would, shows it, and answers its standard output."""
        self.say(f"\n$ reconciler {' '.join(arguments)}", "1")
        done = subprocess.run(
            [*COMMAND, *arguments, "--project", str(self.project)],
            env=self._environ,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stdout, end="", flush=True)
        self.say(f"(exit {done.returncode})", "2")
        must(done.returncode == expect, f"`reconciler {' '.join(arguments)}` exits {expect}, not {done.returncode}")
        return done.stdout

    def by_hand(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Plain HTTP, as somebody in a hurry would do it."""
        self.say(f"# by hand: {method} {path}{'' if body is None else f' {body}'}", "33")
        return self._send(method, path, body)

    def look(self, path: str) -> Any:
        return self._send("GET", path, None)

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        answer = self._http.request(method, path, json=body)
        must(answer.is_success, f"{method} {path} works, instead of {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def sent_since(self, start: int) -> list[tuple[str, str]]:
        """The mutating requests that the platform has seen since, in order."""
        log = self.look(f"/_sandbox/requests?since={start}")["requests"]
        return [(each["method"], each["path"]) for each in log if each["method"] != "GET"]

    def now(self) -> int:
        log = self.look("/_sandbox/requests?since=0")["requests"]
        return max((each["sequence"] for each in log), default=0)

    def edit(self, file: str, old: str, new: str) -> None:
        self.say(f"# in Git: {file}: {old.strip()!r} → {new.strip()!r}", "33")
        path = self.project / file
        text = path.read_text()
        must(text.count(old) == 1, f"{file} holds {old!r} once")
        path.write_text(text.replace(old, new))


def find(objects: list[Any], **fields: str) -> Any:
    found = [each for each in objects if all(each.get(name) == value for name, value in fields.items())]
    must(len(found) == 1, f"one object has {fields}, not {len(found)}")
    return found[0]


def tell(story: Story) -> None:
    story.chapter("The account is not empty: somebody made things by hand")
    policy = story.by_hand("POST", "/ip_policies", {"description": "made by hand"})
    robot = story.by_hand("POST", "/bot_users", {"name": "made by hand"})
    before = {policy["id"]: policy, robot["id"]: robot}

    story.chapter("Plan: every kind of resource, in dependency order")
    forms = [f"{form}={story.pages / name}" for form, name in (("markdown", "plan.md"), ("html", "plan.html"))]
    words = [word for form in ("text", *forms) for word in ("--format", form)]
    planned = story.reconciler("plan", "--detailed-exitcode", *words, expect=2)
    must(" to create" in planned, "the plan counts what it will create")
    must("known after apply" in (story.pages / "plan.md").read_text(), "the page for a review has the fields")

    story.chapter("Apply, then plan again: nothing is left to do")
    story.reconciler("apply", "--auto-approve")
    token = story.project / "secrets" / "ci-agent.token"
    must(token.stat().st_mode & 0o777 == 0o600, "the one-time token lies in a file that only its owner may read")
    start = story.now()
    story.reconciler("plan", "--detailed-exitcode")
    story.reconciler("apply", "--auto-approve")
    must(story.sent_since(start) == [], "a second apply sends no mutating call")

    story.chapter("Drift: somebody changes the account behind Git's back")
    edge = find(story.look("/edges/tls")["tls_edges"])
    backend = find(story.look("/backends/failover")["backends"])
    nightly = find(story.look("/bot_users")["bot_users"], name="nightly")
    story.by_hand("PATCH", f"/backends/failover/{backend['id']}", {"description": "edited in the dashboard"})
    story.by_hand("DELETE", f"/edges/tls/{edge['id']}/ip_restriction")
    story.by_hand("DELETE", f"/bot_users/{nightly['id']}")
    drift = story.reconciler("drift", "--record", expect=2)
    must("changed on the platform" in drift, "drift says that the platform changed")
    must("changed in Git" not in drift, "drift does not blame Git")
    must("deleted on the platform" in drift, "drift says that the robot is gone")

    story.chapter("Apply repairs it")
    story.reconciler("apply", "--auto-approve")
    story.reconciler("plan", "--detailed-exitcode")

    story.chapter("A certificate authority's PEM is swapped: new one, edge re-pointed, old one deleted, in that order")
    certificates.authority(story.project / "pki")
    start = story.now()
    story.reconciler("apply", "--auto-approve")
    calls = [(method, path.split("/")[1]) for method, path in story.sent_since(start)]
    order = [("POST", "certificate_authorities"), ("PATCH", "edges"), ("DELETE", "certificate_authorities")]
    must([call for call in calls if call in order] == order, f"the calls come in that order, not {calls}")

    story.chapter("A module is removed from the YAML: that is a DELETE on its path")
    story.edit(
        "manifests/edges.yaml",
        "  ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}, {ref: IPPolicy/partners}]}\n",
        "",
    )
    start = story.now()
    story.reconciler("apply", "--auto-approve")
    must(("DELETE", f"/edges/tls/{edge['id']}/ip_restriction") in story.sent_since(start), "the module is deleted")

    story.chapter("What was made by hand is still there, untouched")
    must(story.look(f"/ip_policies/{policy['id']}") == before[policy["id"]], "the policy is as it was")
    must(story.look(f"/bot_users/{robot['id']}") == before[robot["id"]], "the robot is as it was")
    story.say("They are.", "32")

    story.chapter("Destroy: exactly what we own; what cannot be had back is allowed by name")
    story.reconciler("destroy", "--auto-approve", expect=4)
    consent = ("delete:ReservedDomain=3", "delete:ReservedAddress=1", "delete:AgentIngress=1", "delete:BotUser=3")
    story.reconciler("destroy", "--auto-approve", *(word for each in consent for word in ("--allow", each)))
    left = [*story.look("/ip_policies")["ip_policies"], *story.look("/bot_users")["bot_users"]]
    must({each["id"] for each in left} == before.keys(), "only what was made by hand is left")
    must(story.look("/edges/tls")["tls_edges"] == [], "no edge is left")

    story.chapter("Report: what differed, and what the applies came to")
    story.reconciler("report", "--out", str(story.pages / "report.html"))
    must("3 differed" in (story.pages / "report.html").read_text(), "the report tells of the drift")


def kept(pages: Path) -> Iterator[str]:
    """Where the pages are."""
    yield "\nTo be looked at:"
    for name, told in (
        ("plan.md", "the first plan as a review shows it"),
        ("plan.html", "the same to click through"),
        ("report.html", "drift and applies"),
    ):
        yield f"  {pages / name}  {told}"


@contextmanager
def sandbox(directory: Path) -> Iterator[str]:
    """The embedded platform on a free loopback port; its base URL."""
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
        certificates.everything(project / "pki")
        with sandbox(directory) as base_url:
            pages = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else directory / "pages"
            pages.mkdir(parents=True, exist_ok=True)
            story = Story(project, base_url, pages)
            try:
                tell(story)
                if pages.parent != directory:
                    for line in kept(pages):
                        story.say(line)
                story.say("\nAll as told.", "1;32")
            except NotAsTold as told:
                story.say(f"\nNot as told: {told}.", "1;31")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
