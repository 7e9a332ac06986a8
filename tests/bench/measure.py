"""Runs programs and says what they took: CPU and peak memory as the kernel counted them, wall time, and the spread.

CPU time is what we compare, because other work on the machine disturbs it least.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import pty
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Taken:
    """What one run took."""

    wall: float  # seconds
    cpu: float  # seconds, of user and system
    peak: float  # MB (2**20) of resident memory
    output: str
    yard: float = 0.0  # seconds of CPU that the yardstick took beside it

    @property
    def ratio(self) -> float:
        """CPU in times of the yardstick: the same on a machine that is slower, or busier for the moment."""
        return self.cpu / self.yard


@dataclass(frozen=True)
class Figure:
    """Several runs of one thing: the median, and the lowest and highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(statistics.median(values), min(values), max(values))

    def format(self, unit: str) -> str:
        low, median, high = (format_number(number) for number in (self.low, self.median, self.high))
        return f"{median} {unit}".rstrip() + (f" ({low}–{high})" if low != high else "")


def format_number(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 else f"{number:.3g}"


# The kernel counts the memory of the starting process as the program's own, so a process with little memory starts it.
_STARTER = """
import json, os, subprocess, sys, time
started = time.monotonic()
process = subprocess.Popen(sys.argv[1:], stdout=2)
_, status, usage = os.wait4(process.pid, 0)
wall, cpu = time.monotonic() - started, usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), wall, cpu, usage.ru_maxrss / 1024]))
"""


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, *, folder: Path = ROOT) -> Taken:
    """AssertionError if the program fails."""
    surroundings = {**os.environ, **(environment or {})}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody measures the compiler
    started = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, *command],
        env=surroundings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    code, wall, cpu, peak = json.loads(started.stdout)
    assert code == 0, f"{' '.join(command)}: exit {code}: {started.stderr[-2000:]}"
    return Taken(wall, cpu, peak, started.stderr)


def time_to_first_output(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds until a program writes to its terminal; then it is interrupted."""
    surroundings = {**os.environ, **environment, "TERM": "xterm"}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
    ours, its = pty.openpty()
    try:
        started = time.monotonic()
        with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=surroundings, cwd=ROOT) as process:
            select.select([ours], [], [])
            took = time.monotonic() - started
            process.kill()
        return took
    finally:
        os.close(ours)
        os.close(its)


def reconciler(*words: str) -> list[str]:
    """The command line as it is installed."""
    return [str(Path(sys.executable).with_name("reconciler")), *words]


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a running process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> float:
    """The most memory that a running process had so far, in MB."""
    [line] = [line for line in _lines(f"/proc/{pid}/status") if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def measure_repeatedly(times: int, measure: Callable[[], Taken], *, warm_up: bool = True) -> list[Taken]:
    """Each run has the yardstick laid before and behind it. `warm_up`: one run before them, which does not count."""
    if warm_up:
        measure()
    runs, before = [], yardstick()
    for _ in range(times):
        taken, behind = measure(), yardstick()
        runs.append(dataclasses.replace(taken, yard=(before + behind) / 2))
        before = behind
    return runs


def yardstick() -> float:
    """Seconds of CPU for a fixed piece of work that is like ours: many small calls and objects of plain Python."""
    started = time.process_time()
    for _ in yaml.load_all(_FIXED, Loader=yaml.SafeLoader):
        pass
    return time.process_time() - started


_FIXED = "---\n".join(
    f"kind: Thing\nname: n{number}\nspec:\n  size: {number}\n  words: [one, 'two', \"three\"]\n  text: |\n    lines\n"
    for number in range(60)
)


def machine() -> dict[str, str]:
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "processor": f"{model}, {os.cpu_count()} cores",
        "memory": f"{int(memory) / 2**20:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "pace": f"yardstick {1000 * yardstick():.1f} ms",
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
