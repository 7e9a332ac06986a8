"""`python -m tests.bench`: measures, prints a table, writes JSON and plots, and compares ratios with an earlier run.

The table's absolute times are of the machine that is named above it. What `--check` compares are ratios: our times in
times of a fixed piece of Python work that is measured beside each run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench import measure, plots, terraform
from tests.bench.rows import Bench, Row

WORSE = 1.25  # what a regression is: less is the machine's noise


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--full", action="store_true", help="up to 100,000 resources")
    parser.add_argument("--times", type=int, default=5, help="runs of each, of which the median counts")
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), metavar="WHAT", help="of " + ", ".join(SECTIONS))
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="where JSON and plots go")
    parser.add_argument("--check", type=Path, help="the JSON of an earlier run: exit 1 if a ratio is a quarter worse")
    asked = parser.parse_args()
    machine, started = measure.machine(), time.monotonic()
    print(", ".join(machine.values()), flush=True)
    earlier = json.loads(asked.check.read_text()) if asked.check else {"rows": []}
    before = {row["what"]: row["ratio"] for row in earlier["rows"] if row["ratio"] is not None}
    rows: list[Row] = []
    worse: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(Path(folder), asked.times)
        for name in asked.only or SECTIONS:
            measured: list[Row] = []
            for row in SECTIONS[name](bench, asked.full):
                print(_line(row), flush=True)
                measured.append(row)
            rows += measured
            if suspects := _worse(measured, before):  # a bad moment of the machine does not come twice
                again = _worse(list(SECTIONS[name](bench, asked.full)), before)
                worse += [row for row in again if row.what in {suspect.what for suspect in suspects}]
    asked.out.mkdir(parents=True, exist_ok=True)
    _write(asked.out, machine, rows)
    print(f"measured in {(time.monotonic() - started) / 60:.1f} minutes")
    for row in worse:
        print(f"worse: {row.what}: {row.ratio:.3g} in times of the yardstick, and {before[row.what]:.3g} before")
    return 1 if worse else 0


def _plans(bench: Bench, full: bool) -> Iterator[Row]:
    return bench.no_op_plans((100, 1_000, 3_000, 10_000, *((30_000, 100_000) if full else ())))


def _latency(bench: Bench, full: bool) -> Iterator[Row]:
    yield from bench.latency(10_000)
    yield from bench.rounds()


def _sandbox(bench: Bench, full: bool) -> Iterator[Row]:
    yield from bench.sandbox_creates()
    yield from bench.sandbox_pages(100_000 if full else 10_000)


def _terraform(bench: Bench, full: bool) -> Iterator[Row]:
    if terraform.is_here():
        yield from bench.terraform_plans((100, 1_000, 3_000, 10_000) if full else (100, 1_000, 10_000))
        yield from bench.terraform_applies(1_000) if full else ()


SECTIONS: dict[str, Callable[[Bench, bool], Iterator[Row]]] = {
    "start": lambda bench, full: bench.start_up(),
    "validate": lambda bench, full: bench.validates(),
    "fmt": lambda bench, full: bench.fmt_check(),
    "plan": _plans,
    "warm": lambda bench, full: bench.warm_plan(),
    "access": lambda bench, full: bench.access(),
    "requests": lambda bench, full: bench.requests(1_000),
    "target": lambda bench, full: bench.targets(),
    "sign": lambda bench, full: bench.first_sign(),
    "latency": _latency,
    "apply": lambda bench, full: bench.applies((2_000, 5_000)),
    "update": lambda bench, full: bench.updates(),
    "file": lambda bench, full: bench.plan_file_applies(1_000, 10_000),
    "sandbox": _sandbox,
    "accounts": lambda bench, full: bench.sandbox_accounts(10_000 if full else 1_000),
    "terraform": _terraform,
}


def _line(row: Row) -> str:
    if row.target is None:
        return f"| {row.what} | {row.figure.format(row.unit)} | | |"
    target = f"{'≥' if row.at_least else '≤'} {measure.format_number(row.target)}"
    return f"| {row.what} | {row.figure.format(row.unit)} | {target} | {'yes' if row.holds else 'NO'} |"


def _write(out: Path, machine: dict[str, str], rows: list[Row]) -> None:
    written: dict[str, Any] = {
        "at": time.strftime("%Y-%m-%d"),
        "machine": machine,
        "rows": [{**asdict(row), "holds": row.holds} for row in rows],
    }
    (out / "bench.json").write_text(json.dumps(written, indent=2) + "\n")
    for name, key, unit in (("time", "seconds", "CPU, seconds"), ("memory", "MB", "peak memory, MB")):
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            if row.points:
                program = "terraform" if "terraform" in row.points else "reconciler"
                lines.setdefault(program, []).append((row.points["resources"], row.points[key]))
        if lines:
            drawn = plots.log_log(f"A plan without changes: {name}", "resources", unit, lines)
            (out / f"{name}.svg").write_text(drawn)


def _worse(rows: list[Row], before: dict[str, float]) -> list[Row]:
    return [row for row in rows if row.ratio is not None and row.ratio > WORSE * before.get(row.what, row.ratio)]


if __name__ == "__main__":
    raise SystemExit(main())
