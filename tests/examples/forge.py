"""A code host that remembers runs and merges besides comments: as much of both APIs as our pipelines ask for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

from tests.cli.code_hosts import CodeHost

NUMBER = 12  # of the one pull or merge request


@dataclass
class Forge(CodeHost):
    """
    merged     commit on the default branch → head of the request that was merged by it
    runs       (workflow or job, head) → id of the run
    failed     ids of runs that did not go well
    artifacts  folder of files by run
    """

    merged: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[str, str], int] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    artifacts: Path = Path()

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, dict[str, str], Any]:
        for pattern, told in (
            (r"/commits/(\w+)/pulls$", self._pulls),
            (r"/workflows/(\w+)\.yml/runs\?(.*)$", self._workflow_runs),
            (r"/actions/runs/(\d+)/artifacts\?name=(\w+)$", self._artifacts_of),
            (r"/commits/(\w+)/merge_requests", self._merge_requests),
            (rf"/merge_requests/{NUMBER}/pipelines$", self._pipelines),
            (r"/pipelines/(\d+)/jobs", self._jobs),
            (r"/jobs/(\d+)/artifacts/(plan-[\w-]+\.json)$", self._artifact),
        ):
            if found := re.search(pattern, target):
                self.asked.append((method, target))
                return 200, {}, told(*found.groups())
        return super().answer(method, target, headers, body)

    def _pulls(self, commit: str) -> Any:
        if commit not in self.merged:
            return []
        return [
            {"merged_at": None, "merge_commit_sha": commit, "head": {"sha": "0" * 40}},
            {"merged_at": "2026-01-01", "merge_commit_sha": commit, "head": {"sha": self.merged[commit]}},
        ]

    def _workflow_runs(self, workflow: str, query: str) -> Any:
        head = re.search(r"head_sha=(\w+)", query)
        runs = [run for (name, sha), run in self.runs.items() if name == workflow and (head is None or head[1] == sha)]
        runs = [run for run in runs if (run in self.failed) == ("status=failure" in query)]
        return {"workflow_runs": [{"id": run} for run in runs[-1:]]}

    def _artifacts_of(self, run: str, name: str) -> Any:
        return {"artifacts": [{"expired": False}] if (self.artifacts / run / name).is_dir() else []}

    def _merge_requests(self, commit: str) -> Any:
        request = {"iid": NUMBER, "merge_commit_sha": commit, "squash_commit_sha": None}
        return [{**request, "sha": self.merged[commit]}] if commit in self.merged else []

    def _pipelines(self) -> Any:
        return [
            {"id": run, "sha": head, "status": status}
            for (_, head), run in self.runs.items()
            for status in ("failed", "success")
        ]

    def _jobs(self, pipeline: str) -> Any:
        return [{"id": 1, "name": "lint"}, {"id": int(pipeline), "name": "plan"}]

    def _artifact(self, job: str, name: str) -> Any:
        return json.loads((self.artifacts / job / "plan" / name).read_text())
