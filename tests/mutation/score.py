"""Runs the sample, keeps its results in cosmic-ray's session database, and reports the score."""

from __future__ import annotations

import difflib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutation.covering import Record, Source, choose_tests
from tests.mutation.mutants import mutate

WORKER = Path(__file__).with_name("worker.py")
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Limits(NamedTuple):
    budget: float = 8.0  # seconds of CPU for the tests of one mutant
    more: float = 25.0  # for the further tests of one that survives these
    least: float = 8.0  # seconds of CPU that each test has at least
    tests: int = 400  # per mutant
    seconds: float = 400.0  # until the whole process of a mutant is killed


LIMITS = Limits()


def copy_checkout(root: Path, folder: Path) -> None:
    """Copies the files of the checkout, committed or not, but none that Git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.decode().split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name, follow_symlinks=False)


def record_tests(copy: Path, folder: Path, tests: Sequence[str], workers: int) -> None:
    """Runs the quick suite once, and records which test runs which line. Tests that fail are left out later."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    environment |= {"MUTATION_RECORD": str(unfinished.resolve()), "MUTATION_SOURCE": "reconciler"}
    words = ["-m", "pytest", "-q", "-p", "tests.mutation.recorder", "-p", "no:cacheprovider"]
    words += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    run = subprocess.run([sys.executable, *words, *tests], cwd=copy, env=environment, check=False)
    if run.returncode not in (0, 1):  # 1: tests have failed
        raise SystemExit("the tests could not be run")
    unfinished.rename(folder)


class Worker:
    """A process of worker.py with a copy of the repository of its own."""

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self._process: subprocess.Popen[str] | None = None

    def run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(WORKER), str(self.copy)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(job) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.copy} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        if self._process is not None:
            with self._process:  # closes its stdin: the worker ends
                pass


class Judge:
    """Tries mutants: chooses the tests of each and has a worker run them."""

    def __init__(
        self, root: Path, record: Record, workers: Sequence[Worker], limits: Limits, also: Sequence[str] = ()
    ) -> None:
        self._root = root  # unmutated
        self._record, self._limits, self._also = record, limits, also
        self._source = Source(root)
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in workers:
            self._idle.put(worker)

    def choose(self, mutant: MutationSpec) -> list[str]:
        return choose_tests(mutant, self._record, self._source)

    def try_mutant(self, item: WorkItem, earlier: WorkResult | None = None) -> WorkResult:
        """Runs the tests of a mutant; of one that survived earlier, the tests for which there was no time."""
        (mutant,) = item.mutations
        path = mutant.module_path.as_posix()
        original = (self._root / path).read_text()
        mutated = mutate(original, mutant)
        assert mutated is not None
        diff = "\n".join(difflib.unified_diff(original.splitlines(), mutated.splitlines(), path, path, "", "", 1, ""))
        covering = self.choose(mutant)
        before = json.loads(earlier.output or "{}").get("ran", 0) if earlier is not None else 0
        tests = covering[before : self._limits.tests]
        if not tests and not self._also:
            return WorkResult(WorkerOutcome.NO_TEST, "{}", TestOutcome.SURVIVED, diff)
        answer = self._run(
            {
                "file": path,
                "text": mutated,
                "tests": tests,
                "also": list(self._also),
                "cpu": {test: self._record.tests[test].cpu for test in tests},
                "budget": self._limits.budget if earlier is None else self._limits.more,
                "least": self._limits.least,
                "seconds": self._limits.seconds,
            }
        )
        answer["covering"] = len(covering)
        answer["ran"] = before + answer.get("ran", 0)
        answer["is_second"] = earlier is not None
        log = answer.pop("log", "")
        if answer["signal"] and not answer.get("failed"):
            outcome, by = WorkerOutcome.ABNORMAL, TestOutcome.INCOMPETENT  # out of time, or out of memory
        elif answer.get("failed") or answer.get("code") not in (0, 5):
            outcome, by = WorkerOutcome.NORMAL, TestOutcome.KILLED
            answer["why"] = answer.get("why") or log[-300:]
        else:
            outcome, by = WorkerOutcome.NORMAL, TestOutcome.SURVIVED
        return WorkResult(outcome, json.dumps(answer), by, diff)

    def _run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        worker = self._idle.get()
        try:
            return worker.run(job)
        finally:
            self._idle.put(worker)


def run_sample(
    session: Path,
    sample: Iterable[WorkItem],
    judge: Judge,
    workers: int,
    tell: Callable[[WorkItem, WorkResult], None],
    again: bool = False,
) -> None:
    """Tries the mutants that have no result in the session yet; with `again`, also those that survived.

    Most mutants are caught by their first tests. The survivors come last, with more time for each.
    """
    with use_db(session, WorkDB.Mode.create) as database:
        known = {item.job_id for item in database.work_items}
        database.add_work_items(item for item in sample if item.job_id not in known)
        results = dict(database.results)
        survived = {job for job, result in results.items() if result.test_outcome == TestOutcome.SURVIVED}
        for is_first in (True, False):
            tasks: dict[Future[WorkResult], WorkItem] = {}
            with ThreadPoolExecutor(workers) as pool:
                for item in sample:
                    result = results.get(item.job_id)
                    if is_first and (result is None or (again and item.job_id in survived)):
                        tasks[pool.submit(judge.try_mutant, item)] = item
                    elif not is_first and result is not None and _has_further_tests(result):
                        tasks[pool.submit(judge.try_mutant, item, result)] = item
                try:
                    for task in as_completed(tasks):
                        item = tasks[task]
                        results[item.job_id] = task.result()
                        database.set_result(item.job_id, task.result())
                        tell(item, task.result())
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise


def _has_further_tests(result: WorkResult) -> bool:
    """Whether a mutant survived its first tests, and there was no time for others."""
    details = json.loads(result.output or "{}")
    is_out_of_time = details.get("skipped", 0) > 0 and not details.get("is_second")
    return result.test_outcome == TestOutcome.SURVIVED and is_out_of_time


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant."""

    package: str
    file: str
    line: int
    definition: str
    operator: str
    status: str  # caught, survived, equivalent, timeout
    diff: str  # removed and added lines
    by: str  # the test that failed
    covering: int  # tests that run the line
    ran: int
    why: str  # why no input distinguishes an equivalent mutant


class Equivalent(NamedTuple):
    """An entry of equivalent.toml."""

    file: str
    function: str
    mutated: str  # the changed lines as the mutant has them, without indentation
    why: str


def load_equivalents(file: Path = EQUIVALENT) -> list[Equivalent]:
    entries = tomllib.loads(file.read_text()).get("mutant", [])
    return [Equivalent(**entry) for entry in entries]


def collect_verdicts(
    session: Path, sample: Mapping[str, Sequence[WorkItem]], equivalents: Sequence[Equivalent]
) -> Iterator[Verdict]:
    with use_db(session, WorkDB.Mode.create) as database:
        results = dict(database.results)
    arguments = {entry[:3]: entry.why for entry in equivalents}
    for package, items in sample.items():
        for item in items:
            if item.job_id in results:
                yield _judge(package, item.mutations[0], results[item.job_id], arguments)


def _judge(
    package: str, mutant: MutationSpec, result: WorkResult, arguments: Mapping[tuple[str, str, str], str]
) -> Verdict:
    details = json.loads(result.output or "{}")
    changed = [line for line in (result.diff or "").splitlines()[2:] if line[:1] in "+-"]
    added = "\n".join(line[1:].strip() for line in changed if line[0] == "+")
    file, function = mutant.module_path.as_posix(), mutant.definition_name or ""
    status = {TestOutcome.KILLED: "caught", TestOutcome.SURVIVED: "survived"}.get(result.test_outcome, "timeout")
    why = arguments.get((file, function, added), "")
    return Verdict(
        package,
        file,
        mutant.start_pos[0],
        function,
        mutant.operator_name.partition("/")[2],
        "equivalent" if status == "survived" and why else status,
        "\n".join(changed),
        details.get("failed", ""),
        details.get("covering", 0),
        details.get("ran", 0),
        why,
    )


def render_report(verdicts: Sequence[Verdict], heading: str) -> str:
    """Markdown: the score of each package, then the survivors."""
    lines = [heading, "", "| package | mutants | caught | survived | equivalent | timeouts | score |"]
    lines.append("| --- | --: | --: | --: | --: | --: | --: |")
    packages = list(dict.fromkeys(verdict.package for verdict in verdicts))
    for package in [*packages, "all"]:
        statuses = Counter(verdict.status for verdict in verdicts if package in (verdict.package, "all"))
        judged = statuses["caught"] + statuses["survived"]
        score = f"{100 * statuses['caught'] / judged:.1f} %" if judged else "–"
        numbers = [
            statuses.total(),
            *(statuses[name] for name in ("caught", "survived", "equivalent", "timeout")),
            score,
        ]
        lines.append(f"| {package} | " + " | ".join(map(str, numbers)) + " |")
    for status, title in (("survived", "Survivors"), ("timeout", "Timeouts"), ("equivalent", "Equivalent")):
        listed = sorted(
            (verdict for verdict in verdicts if verdict.status == status),
            key=lambda verdict: (verdict.file, verdict.line),
        )
        lines += ["", f"## {title}: {len(listed)}"] if listed else []
        for verdict in listed:
            tests = f"{verdict.ran} of {verdict.covering} tests" if verdict.covering else "no test runs it"
            lines += ["", f"{verdict.file}:{verdict.line} {verdict.definition} · {verdict.operator} · {tests}"]
            lines += [verdict.why] if verdict.why else []
            lines += ["```diff", verdict.diff, "```"]
    return "\n".join(lines) + "\n"


def write_report(folder: Path, verdicts: Sequence[Verdict], heading: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    report = folder / "report.md"
    report.write_text(render_report(verdicts, heading))
    return report
