"""Finds the pull or merge requests that a push merged, and the plan files that their pipelines kept.

Reads only. What a pipeline of a request kept may be written by anyone who can push a branch: nothing here trusts it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

from reconciler.api import artifacts
from reconciler.api.artifacts import UnusableArchive
from reconciler.api.code_hosts import LARGEST, CodeHost, GitHubRepository, GitLabProject, part
from reconciler.api.exchange import Response, ask
from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused
from reconciler.model.value import Secret

PIPELINE = "plan"
"""The name of the workflow's file, its artifact and the job, as `init --ci` writes them."""
_MOST_RUNS = 20  # of one request whose files are read, newest first
_DOWNLOADING = 300.0  # seconds
_REDIRECTS = (301, 302, 303, 307, 308)
_MISSING = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class MergedRequest(Struct, frozen=True):
    """A merged pull or merge request.

    name       `#12` or `!12`
    base       name of the branch that it was merged into
    head       id of its last commit
    merged_as  the commits of the base branch that can be the result of the merge
    """

    name: str
    number: int
    base: str
    head: str
    merged_as: tuple[str, ...]


class Reviews(CodeHost):
    """The requests of one repository. Every method raises a Failure if the code host cannot be used."""

    repository: str

    @abstractmethod
    def find_merged(self, commit: str) -> Iterator[MergedRequest]:
        """Yields the merged requests that the host associates with a commit, also those into other branches."""

    @abstractmethod
    def read_plans(self, request: MergedRequest, file: str) -> Iterator[bytes | UnusableArchive]:
        """Yields the plan files with this name of the request's successful runs, newest first."""

    def _download(self, path: str) -> bytes | None:
        """A file; None if there is none. Follows one redirect to where the host stores files, without the token."""
        response = self._send("GET", path)
        if response.status in _REDIRECTS:
            response = self._follow(response)
        if response.status in _MISSING:
            return None
        if not response.is_success:
            raise self._failure("GET", path, response)
        return response.content

    def _follow(self, response: Response) -> Response:
        parts = urlsplit(response.headers.get("Location", ""))
        try:
            origin = Origin.parse(f"{parts.scheme}://{parts.netloc}")
        except ValueError as error:
            raise Refused(f"{self._origin} redirected to an address that cannot be used: {error}") from None
        if origin.is_loopback and not self._origin.is_loopback:
            raise Refused(f"{self._origin} redirected to {origin}; the redirect was not followed")
        address = origin.at(parts.path + (f"?{parts.query}" if parts.query else ""))
        headers = {"User-Agent": "reconciler"}
        return ask(origin, "GET", address, headers, seconds=_DOWNLOADING, largest=LARGEST)

    def _items(self, path: str, name: str = "") -> list[dict[str, Any]]:
        """The first page of a list, or of the list in the field `name`."""
        body = self._decode(self._ask("GET", path))
        found = (body.get(name) if isinstance(body, dict) else None) if name else body
        if not isinstance(found, list):
            raise Refused(f"the response of {self._origin} is not a list")
        return [item for item in found if isinstance(item, dict)]


class GitHubReviews(GitHubRepository, Reviews):
    """The pull requests of a repository at GitHub."""

    def __init__(self, base_url: str, token: Secret, repository: str) -> None:
        super().__init__(base_url, token, repository)
        self.repository = repository

    def find_merged(self, commit: str) -> Iterator[MergedRequest]:
        for pull in self._pages(f"{self._repository}/commits/{commit}/pulls"):
            base, number = part(pull, "base"), pull.get("number")
            # A fork's requests into the fork itself are associated with the same commits.
            is_ours = str(part(base, "repo").get("full_name")).lower() == self.repository.lower()
            if pull.get("merged_at") and isinstance(number, int) and is_ours:
                merged_as = _texts(pull.get("merge_commit_sha"))
                yield MergedRequest(
                    f"#{number}", number, str(base.get("ref")), str(part(pull, "head").get("sha")), merged_as
                )

    def read_plans(self, request: MergedRequest, file: str) -> Iterator[bytes | UnusableArchive]:
        runs = f"{self._repository}/actions/workflows/{PIPELINE}.yml/runs"
        query = f"?head_sha={quote(request.head, safe='')}&event=pull_request&status=success&per_page=100"
        for run in sorted(_ids(self._items(runs + query, "workflow_runs")), reverse=True)[:_MOST_RUNS]:
            kept = self._items(f"{self._repository}/actions/runs/{run}/artifacts?name={PIPELINE}", "artifacts")
            newest = max(_ids(item for item in kept if not item.get("expired")), default=None)
            if newest is None:
                continue
            archive = self._download(f"{self._repository}/actions/artifacts/{newest}/zip")
            if archive is not None:
                try:
                    yield artifacts.extract(archive, PurePosixPath(file).name)  # its folder is the root of the archive
                except UnusableArchive as error:
                    yield error


class GitLabReviews(GitLabProject, Reviews):
    """The merge requests of a project at GitLab."""

    def __init__(self, base_url: str, token: Secret, project: str) -> None:
        super().__init__(base_url, token, project)
        self.repository = project

    def find_merged(self, commit: str) -> Iterator[MergedRequest]:
        for found in self._pages(f"{self._project}/repository/commits/{commit}/merge_requests?state=merged"):
            number, target = found.get("iid"), found.get("target_project_id")
            if found.get("state") == "merged" and isinstance(number, int) and self._is_ours(target):
                created = _texts(found.get("merge_commit_sha"), found.get("squash_commit_sha"))
                # Without a commit of the merge, the branch was moved to the head. Else a later push of it is no merge.
                merged_as = created or _texts(found.get("sha"))
                yield MergedRequest(
                    f"!{number}", number, str(found.get("target_branch")), str(found.get("sha")), merged_as
                )

    def read_plans(self, request: MergedRequest, file: str) -> Iterator[bytes | UnusableArchive]:
        pipelines = f"{self._project}/merge_requests/{request.number}/pipelines?per_page=100"
        # Those of a fork run in its own project, and their jobs are not found here.
        ours = (found for found in self._items(pipelines) if self._is_ours(found.get("project_id", self.repository)))
        for pipeline in sorted(_ids(ours), reverse=True)[:_MOST_RUNS]:
            jobs = self._items(f"{self._project}/pipelines/{pipeline}/jobs?scope[]=success&per_page=100")
            job = max(_ids(job for job in jobs if job.get("name") == PIPELINE), default=None)
            if job is None:
                continue
            content = self._download(f"{self._project}/jobs/{job}/artifacts/{quote(file)}")
            if content is not None and len(content) > artifacts.LARGEST:
                yield UnusableArchive(f"has {file}, which is larger than {artifacts.LARGEST // 2**20} MB")
            elif content is not None:
                yield content

    def _is_ours(self, project: object) -> bool:
        """Whether it is the id of this project, as far as the id of this project is known."""
        return str(project) == self.repository or not self.repository.isdecimal()


def _ids(items: Any) -> Iterator[int]:
    return (item["id"] for item in items if isinstance(item.get("id"), int))


def _texts(*values: object) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str) and value)
