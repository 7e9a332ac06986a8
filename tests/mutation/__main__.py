"""`python -m tests.mutation [PATHS] [--count N]`: changes the source at random places and measures how many of the
changes (mutants) the tests catch.

PATHS are packages or files below the repository; by default the packages in which a bug is dangerous. The sample's seed
is the commit. Results are kept in build/mutation, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem, WorkResult

from tests.mutation.covering import Record
from tests.mutation.mutants import draw_sample, mutate, survey
from tests.mutation.planting import find_planted
from tests.mutation.score import (
    LIMITS,
    Judge,
    Limits,
    Worker,
    collect_verdicts,
    copy_checkout,
    load_equivalents,
    record_tests,
    render_report,
    run_sample,
    write_report,
)

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a folder of our own; no store waits for a disk
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tuple(f"reconciler/{name}" for name in ("planning", "engine", "operations", "api", "store", "project"))
# Tests whose work is done by other processes: no record of theirs would say which lines they run.
IN_PROCESSES = (
    "tests/bench",
    "tests/examples",
    "tests/faults/kills",
    "tests/mutation",
    "tests/packaging",
    "tests/simulation/test_mutants.py",
)


def main(words: Sequence[str] | None = None, checkout: Path = ROOT, limits: Limits = LIMITS) -> int:
    options = _parse(words)
    commit = _git(checkout, "rev-parse", "HEAD").strip()
    seed = options.seed or commit
    version = commit[:12] + _name_changes(checkout)
    folder = checkout / "build" / "mutation"
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        memory = Path("/dev/shm")  # noqa: S108 - in a folder of our own; stores wait for no disk there
        base = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="mutation-", dir=memory if memory.is_dir() else None)
            )
        )
        copies = [base / str(number) for number in range(1 if options.report else options.workers + 1)]
        for copy in copies:
            copy_checkout(checkout, copy)
        root, *others = copies
        record = Path(options.record) if options.record else folder / f"record-{version}"
        if not record.exists() and not options.report:
            print(f"recording which test runs which line, in {record}", flush=True)
            record_tests(root, record, ["tests", *(f"--ignore={path}" for path in IN_PROCESSES)], options.workers)
        if options.planted:
            sample, gone = find_planted(root)
            for bug in gone:
                print(f"{bug.file}: the text of this bug is gone: {bug.name}", file=sys.stderr)
        else:
            sample = _draw_sample(root, options, seed)
        session = folder / f"session-{'planted-' * options.planted}{seed[:12]}.sqlite"
        if not options.report:
            workers = [Worker(copy) for copy in others]
            for worker in workers:
                stack.callback(worker.stop)
            judge = Judge(
                root, Record(record), workers, limits._replace(budget=options.budget, more=options.more), options.also
            )
            items = [item for package in sample.values() for item in package]
            try:
                run_sample(session, items, judge, options.workers, _Progress().tell, options.again)
            except KeyboardInterrupt:
                print("interrupted: the same command goes on from here", file=sys.stderr)
        verdicts = list(collect_verdicts(session, sample, load_equivalents()))
    heading = f"# Mutation score of {version}, seed {seed[:12]}"
    report = write_report(folder, verdicts, heading)
    print(render_report(verdicts, heading).partition("\n## ")[0])
    print(f"The survivors are in {report.relative_to(checkout)}.")
    return 0


def _draw_sample(root: Path, options: argparse.Namespace, seed: str) -> dict[str, list[WorkItem]]:
    sources: dict[Path, str] = {}

    def is_program(mutant: MutationSpec) -> bool:
        path = mutant.module_path
        sources.setdefault(path, (root / path).read_text())
        return mutate(sources[path], mutant) is not None

    return draw_sample(survey(root, options.paths), options.count, seed, is_program)


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=PACKAGES, metavar="PATH")
    parser.add_argument("--count", type=int, default=1000, help="mutants, over all paths [1000]")
    parser.add_argument("--planted", action="store_true", help="the bugs of planted.toml instead of random changes")
    parser.add_argument("--seed", default="", help="seed of the sample [the commit]")
    parser.add_argument(
        "--budget", type=float, default=LIMITS.budget, help="seconds of CPU for the tests of a mutant [8]"
    )
    parser.add_argument("--more", type=float, default=LIMITS.more, help="further seconds for one that survives [25]")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at once [one per core]")
    parser.add_argument("--record", default="", help="a record of an earlier run, instead of a new one for each commit")
    parser.add_argument("--also", nargs="*", default=[], metavar="TESTS", help="tests to run first with each mutant")
    parser.add_argument("--again", action="store_true", help="try the survivors again, for instance with new tests")
    parser.add_argument("--report", action="store_true", help="only report the results so far")
    options = parser.parse_args(words)
    options.paths = [Path(path).as_posix() for path in options.paths]
    return options


def _git(checkout: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=checkout, capture_output=True, text=True, check=True).stdout


def _name_changes(checkout: Path) -> str:
    """Empty if everything is committed."""
    status = _git(checkout, "status", "--porcelain", "reconciler", "tests")
    changes = status + _git(checkout, "diff", "HEAD", "reconciler", "tests")
    return f"-{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if status else ""


class _Progress:
    def __init__(self) -> None:
        self._done, self._began = 0, time.monotonic()

    def tell(self, item: WorkItem, result: WorkResult) -> None:
        self._done += 1
        mutant = item.mutations[0]
        outcome = {TestOutcome.KILLED: "caught", TestOutcome.SURVIVED: "survived"}.get(result.test_outcome, "timeout")
        print(
            f"{time.monotonic() - self._began:6.0f} s  {self._done:4}  {outcome:<8}  "
            f"{mutant.module_path}:{mutant.start_pos[0]} {mutant.operator_name.partition('/')[2]}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
