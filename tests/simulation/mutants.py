"""`python -m tests.simulation.mutants [WORDS]`: plants one bug after the other in a copy of the source, and tells by
which tests it is caught. Ends badly if one survives. WORDS choose bugs by a part of their name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.access.planted import FAULTS
from tests.simulation.planted import BUGS, Bug

ROOT = Path(__file__).resolve().parents[2]
# All cases of `make test-full`: what `make test` leaves out may be what catches a bug.
FULL = (
    "-m",
    "not soak and not postgres and not editor and not clients",
    "--hypothesis-profile=full",
    "--hypothesis-seed=0",
)
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *FULL)
DETECTORS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("simulation", ("-m", "tests.simulation", "0:2000", "1")),
    ("engine", (*PYTEST, "tests/engine")),
    ("planning", (*PYTEST, "tests/planning")),
    ("laws", (*PYTEST, "tests/laws")),
    ("store", (*PYTEST, "tests/store")),
    ("languages", (*PYTEST, "tests/languages")),
    # The cases of `make test`: ten thousand edits take too long for a bug that survives.
    ("access", (*PYTEST[:6], "--hypothesis-seed=0", "tests/access/test_laws.py", "tests/access/test_edits.py")),
)
"""In this order, but for the expected one, until one of them catches the bug."""


EVERY_BUG = (*BUGS, *FAULTS)


@dataclass(frozen=True)
class Verdict:
    bug: Bug
    by: str  # empty: it survives
    how: str
    seconds: float


def verdict(bug: Bug, source: Path = ROOT) -> Verdict:
    """Plant it in a copy of the source, and see."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy_source(source, Path(folder))
        plant(bug, Path(folder))
        by, how = find_detector(Path(folder), bug.expected)
    return Verdict(bug, by, how, time.perf_counter() - began)


def copy_source(source: Path, folder: Path) -> None:
    for part in ("reconciler", "tests", "docs"):  # tests compare some pages with what is tested
        shutil.copytree(source / part, folder / part)
    shutil.copy2(source / "pyproject.toml", folder)


def plant(bug: Bug, root: Path) -> None:
    """ValueError if the source does not hold what the bug is to replace, once."""
    path = root / "reconciler" / bug.file
    text = path.read_text()
    for old, new in bug.changes:
        if text.count(old) != 1:
            raise ValueError(f"{bug.file} holds {text.count(old)} times, not once: {old!r}")
        text = text.replace(old, new)
    path.write_text(text)


def find_detector(
    root: Path, expected: str, detectors: Sequence[tuple[str, tuple[str, ...]]] = DETECTORS
) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(root)}
    for name, words in sorted(detectors, key=lambda detector: detector[0] != expected):
        run = subprocess.run(
            [sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        if gist := _gist(run.stdout + run.stderr):
            return name, gist
    return "", ""


def _gist(output: str) -> str:
    """The line that says most: a history's seed, or the name of a test that failed. A run that broke tells nothing."""
    lines = (line for line in output.splitlines() if line.startswith("FAILED ") or line.split(":")[0].isdigit())
    return next(lines, "").removeprefix("FAILED ")[:110]


def main(words: Sequence[str]) -> int:
    bugs = [bug for bug in EVERY_BUG if not words or any(word in bug.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="sound-") as folder, ThreadPoolExecutor(os.cpu_count()) as several:
        source = Path(folder)  # what is edited meanwhile changes nothing here
        copy_source(ROOT, source)
        wanted = {bug.expected for bug in bugs}
        sound = find_detector(source, "", [detector for detector in DETECTORS if detector[0] in wanted])
        if sound[0]:
            print(f"nothing was planted, and yet {sound[0]} fails: {sound[1]}")
            return 1
        verdicts = []
        for result in several.map(lambda bug: verdict(bug, source), bugs):
            verdicts.append(result)
            print(
                f"{result.bug.name:<56} {result.by or 'SURVIVES':<10} {result.seconds:5.1f} s  {result.how}", flush=True
            )
    survivors = [verdict.bug.name for verdict in verdicts if not verdict.by]
    print(f"{len(bugs) - len(survivors)} of {len(bugs)} planted bugs caught")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
