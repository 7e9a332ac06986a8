"""Where a plan or a report was created: environment, author, and links to the commit, its review and the CI run."""

from __future__ import annotations

from msgspec import Struct


class Link(Struct, frozen=True):
    """A text, and the address that it leads to; empty: text only."""

    text: str
    url: str = ""


class RunContext(Struct, frozen=True):
    """What is known about the run that created a page; None or empty: unknown."""

    environment: str = ""
    commit: Link | None = None
    author: str = ""
    review: Link | None = None  # the pull or merge request
    run: Link | None = None  # of the pipeline

    @property
    def run_address(self) -> str:
        """The address of the run; empty if it is unknown."""
        return self.run.url if self.run is not None else ""
