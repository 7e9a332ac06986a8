"""Git repositories that workers fetch from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.harness.git import GIT


class Repository:
    """A Git repository whose commits have one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        done = subprocess.run([*GIT, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, content: str) -> str:
        (self.folder / "fleet.yaml").write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=next")
        return self.git("rev-parse", "HEAD")
