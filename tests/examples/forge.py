"""An emulated code host with requests, merges, runs and artifacts besides comments: the part of the APIs of GitHub and
GitLab that the product uses."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

from tests.cli.code_hosts import CodeHost

NUMBER = 12  # of the first request
REPOSITORY = "octo/infra"  # at GitHub
PROJECT = "42"  # at GitLab


@dataclass
class Change:
    """A pull or merge request.

    merged  its commits on the base branch: a merge, a squashed commit, rebased commits
    merge   GitHub's merge_commit_sha, and GitLab's if the merge has its own commit
    squash  GitLab's squash_commit_sha
    """

    number: int
    head: str
    base: str = "main"
    state: str = "open"
    merged: list[str] = field(default_factory=list)
    merge: str | None = None
    squash: str | None = None


@dataclass
class Run:
    """A run of a workflow, or a pipeline.

    number  of its request
    result  GitHub's conclusion
    event   that started it; empty: matches any event
    project in GitLab: a fork's pipeline runs in the fork
    """

    id: int
    head: str
    workflow: str = "plan"
    number: int = NUMBER
    result: str = "success"
    event: str = ""
    project: str = PROJECT


@dataclass
class Forge(CodeHost):
    """
    artifacts  folders of files, by run and name of the artifact
    archives   the download of a run, instead of its artifacts
    stored     the headers of downloads from GitHub's storage of artifacts
    expired    runs with expired artifacts
    location   another target for redirects of downloads
    answers    other responses by their key: `workflow_runs`
    """

    requests: list[Change] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    artifacts: Path = Path()
    archives: dict[int, bytes] = field(default_factory=dict)
    stored: list[dict[str, str]] = field(default_factory=list)
    expired: set[int] = field(default_factory=set)
    location: str | None = None
    answers: dict[str, Any] = field(default_factory=dict)

    def open(self, head: str, base: str = "main") -> Change:
        self.requests.append(Change(NUMBER + len(self.requests), head, base))
        return self.requests[-1]

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, dict[str, str], Any]:
        if found := re.search(r"^/storage/(\d+)\?signature=(?:%2F|/)a%3D$", target):
            self.stored.append(dict(headers))
            return 200, {}, self._archive(int(found[1]))
        for pattern, handler in (
            (rf"^/repos/{REPOSITORY}/commits/(\w+)/pulls\?", self._pulls),
            (r"/workflows/(\w+)\.yml/runs\?(.*)$", self._workflow_runs),
            (r"/actions/runs/(\d+)/artifacts\?name=(\w+)$", self._artifacts_of),
            (r"/actions/artifacts/(\d+)/zip$", self._zip),
            (rf"^/api/v4/projects/{PROJECT}/repository/commits/(\w+)/merge_requests\?state=merged", self._find_merged),
            (r"/merge_requests/(\d+)/pipelines\?", self._pipelines),
            (r"/pipelines/(\d+)/jobs\?scope(?:\[\]|%5B%5D)=success", self._jobs),
            (r"/jobs/(\d+)/artifacts/(?:\.reconciler/)?(plan[\w-]*\.json)$", self._artifact),
        ):
            if found := re.search(pattern, target):
                self.asked.append((method, target))
                response = handler(*found.groups())
                return response if isinstance(response, tuple) else (200, {}, response)
        return super().answer(method, target, headers, body)

    # --- GitHub -------------------------------------------------------------------------------------------------------

    def _pulls(self, commit: str) -> Any:
        return [
            {
                "number": one.number,
                "state": "closed" if one.state == "merged" else one.state,
                "merged_at": "2026-01-01T00:00:00Z" if one.state == "merged" else None,
                "merge_commit_sha": one.merge
                if one.state == "merged"
                else "f" * 40,  # for an open one, GitHub's test merge
                "head": {"sha": one.head},
                "base": {"ref": one.base, "repo": {"full_name": REPOSITORY}},
            }
            for one in self.requests
            if commit in (*one.merged, one.head)
        ]

    def _workflow_runs(self, workflow: str, query: str) -> Any:
        head = re.search(r"head_sha=(\w+)", query)
        result = re.search(r"status=(\w+)", query)
        runs = [run for run in self.runs if run.workflow == workflow and (head is None or head[1] == run.head)]
        runs = [run for run in runs if result is None or run.result == result[1]]
        event = re.search(r"event=(\w+)", query)
        runs = [run for run in runs if event is None or run.event in ("", event[1])]
        newest = sorted(runs, key=lambda run: -run.id)
        if "workflow_runs" in self.answers:
            return self.answers["workflow_runs"]
        return {"workflow_runs": [{"id": run.id, "head_sha": run.head} for run in newest]}

    def _artifacts_of(self, run: str, name: str) -> Any:
        exists = (self.artifacts / run / name).is_dir() or int(run) in self.archives
        expired = int(run) in self.expired
        return {"artifacts": [{"id": int(run), "name": name, "expired": expired}] if exists else []}

    def _zip(self, artifact: str) -> Any:
        if int(artifact) in self.expired:
            return 410, {}, {"message": "Artifact has expired"}
        stored = f"{self.url}/storage/{artifact}?signature=%2Fa%3D"
        return 302, {"Location": stored if self.location is None else self.location}, None

    def _archive(self, run: int) -> bytes:
        if run in self.archives:
            return self.archives[run]
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((self.artifacts / str(run) / "plan").iterdir()):
                archive.write(file, file.name)
        return written.getvalue()

    # --- GitLab -------------------------------------------------------------------------------------------------------

    def _find_merged(self, commit: str) -> Any:
        return [
            {
                "iid": one.number,
                "state": one.state,
                "target_branch": one.base,
                "target_project_id": int(PROJECT),
                "sha": one.head,
                "merge_commit_sha": one.merge,
                "squash_commit_sha": one.squash,
            }
            for one in self.requests
            if one.state == "merged" and commit in (*one.merged, one.head)
        ]

    def _pipelines(self, number: str) -> Any:
        runs = [run for run in self.runs if run.workflow == "plan" and run.number == int(number)]
        newest = sorted(runs, key=lambda run: -run.id)
        return [{"id": run.id, "sha": run.head, "status": run.result, "project_id": int(run.project)} for run in newest]

    def _jobs(self, pipeline: str) -> Any:
        if not any(run.id == int(pipeline) and run.project == PROJECT for run in self.runs):
            return 404, {}, {"message": "404 Not found"}
        is_good = any(run.id == int(pipeline) and run.result == "success" for run in self.runs)
        return [{"id": 1, "name": "lint"}, *([{"id": int(pipeline), "name": "plan"}] if is_good else [])]

    def _artifact(self, job: str, name: str) -> Any:
        if int(job) in self.archives:
            return self.archives[int(job)]
        file = self.artifacts / job / "plan" / name
        if int(job) in self.expired or not file.is_file():
            return 404, {}, {"message": "404 Not Found"}
        return file.read_bytes()
