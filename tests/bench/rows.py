"""What is measured: one function for each promise in docs/performance.md, which answers with its rows of the table."""

from __future__ import annotations

import dataclasses
import json
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log10
from pathlib import Path

from reconciler import kinds
from tests.bench import measure, terraform, wire, worlds
from tests.bench.measure import Figure, Taken
from tests.bench.worlds import SizedProject
from tests.harness.platform import SandboxProcess

LATENCY = 0.05  # seconds
AT_ONCE = 32
SLOW_TIMES = 3  # runs of what takes ten seconds and more, so that the whole ends within ten minutes
DEPTH = 4  # creates that wait for each other: tunnel group, failover backend, edge, route


@dataclass
class Row:
    """One figure beside its target. `ratio` is what a regression check compares, where there is one."""

    what: str
    figure: Figure
    unit: str
    target: float | None = None
    at_least: bool = False
    ratio: float | None = None
    points: dict[str, float] = field(default_factory=dict)  # for the plots: resources, seconds, MB, whose

    @property
    def holds(self) -> bool | None:
        if self.target is None:
            return None
        return self.figure.median >= self.target if self.at_least else self.figure.median <= self.target


class Bench:
    """Worlds are made once and shared by all rows."""

    def __init__(self, folder: Path, times: int) -> None:
        self._folder = folder
        self.times = times
        self._worlds: dict[int, SizedProject] = {}

    def world(self, resources: int) -> SizedProject:
        if resources not in self._worlds:
            world = worlds.project(self._folder / f"project-{resources}", resources)
            self._worlds[resources] = self._apply_once(world, self._folder / f"sandbox-{resources}.db")
        return self._worlds[resources]

    def _apply_once(self, world: SizedProject, database: Path) -> SizedProject:
        """The project as a user has it after the first apply, with the account and the default store."""
        with SandboxProcess(db=database) as sandbox:
            words = ("apply", "--project", str(world.root), "-y", "--quiet")
            measure.run(measure.reconciler(*words), _environment(sandbox))
        return dataclasses.replace(world, database=database)

    @contextmanager
    def account(self, world: SizedProject | None, latency: float = 0.0) -> Iterator[SandboxProcess]:
        """A sandbox with a world in it; a copy, since reading changes what is being provisioned."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            database: Path | str = ":memory:"
            if world is not None and world.database is not None:
                database = Path(folder) / "sandbox.db"
                shutil.copy(world.database, database)
            with SandboxProcess(db=database, latency_ms=round(latency * 1000)) as sandbox:
                yield sandbox

    def _measure(self, run: Callable[[], Taken], *, slow: bool) -> list[Taken]:
        """A slow run is repeated less often, and without one that warms the caches."""
        return measure.measure_repeatedly(min(self.times, SLOW_TIMES) if slow else self.times, run, warm_up=not slow)

    # --- plans ----------------------------------------------------------------------------------------------------

    def _plan(self, world: SizedProject, sandbox: SandboxProcess, *words: str, store: str | None = None) -> Taken:
        command = measure.reconciler("plan", "--project", str(world.root), *words)
        taken = measure.run(command, _environment(sandbox, store))
        assert "No changes" in taken.output, taken.output
        return taken

    def no_op_plans(self, sizes: tuple[int, ...]) -> Iterator[Row]:
        measured = []
        for size in sizes:
            world = self.world(size)
            with self.account(world) as sandbox:
                runs = measure.measure_repeatedly(self.times, lambda: self._plan(world, sandbox))  # noqa: B023 - called at once
            cpu, peak = Figure.of([run.cpu for run in runs]), Figure.of([run.peak for run in runs])
            points = {"resources": size, "seconds": cpu.median, "MB": peak.median}
            named = size == 10_000
            target = 1.5 if named else None
            if size >= 1_000:  # below, start-up is nearly all
                measured.append(points)
            yield Row(f"no-op plan of {size:,}, CPU", cpu, "s", target, ratio=_ratio(runs), points=points)
            yield Row(f"no-op plan of {size:,}, peak memory", peak, "MB", {100: 60, 10_000: 120}.get(size))
            if size in (100, 10_000):
                yield from self._without_store(world)
        if len(measured) > 1:
            yield from _slopes(measured)

    def _without_store(self, world: SizedProject) -> Iterator[Row]:
        with self.account(world) as sandbox:
            runs = measure.measure_repeatedly(self.times, lambda: self._plan(world, sandbox, store="memory:"))
        what = f"… with RECONCILER_STORE=memory:, {world.resources:,}"
        yield Row(f"{what}, CPU", Figure.of([run.cpu for run in runs]), "s")
        yield Row(f"{what}, peak memory", Figure.of([run.peak for run in runs]), "MB")

    def warm_plan(self, size: int = 10) -> Iterator[Row]:
        """What a plan costs in a process that has planned before: no start-up, one small account."""
        world = self.world(size)
        with self.account(world) as sandbox:
            words = [sys.executable, "-m", "tests.bench.warm_run", str(world.root), sandbox.base_url, "20"]
            runs = measure.measure_repeatedly(self.times, lambda: measure.run(words))
        figures = [statistics.median(json.loads(run.output.splitlines()[-1])) for run in runs]
        yield Row(f"warm plan of {size} resources, CPU", Figure.of(figures), "s", 0.060)

    def requests(self, size: int) -> Iterator[Row]:
        """Counted, not timed: a list page per hundred objects, and nothing else."""
        world = self.world(size)
        with self.account(world) as sandbox:
            sandbox.forget_log()
            self._plan(world, sandbox)
            log = [f"{entry['method']} {entry['path']}" for entry in sandbox.log()]
            least = sum(_count_pages(sandbox, path) for path in _list_paths())
        yield Row(f"requests of a no-op plan of {size:,}", Figure.of([len(log)]), "requests", least)
        yield Row("… that are not pages of a list", Figure.of([len(log) - _pages(log)]), "requests", 0)

    def latency(self, size: int) -> Iterator[Row]:
        """Against the longest chain of pages, each of which cannot be asked for before the last one is there."""
        world = self.world(size)
        with self.account(world) as sandbox:
            own = Figure.of(
                [taken.wall for taken in measure.measure_repeatedly(self.times, lambda: self._plan(world, sandbox))]
            )
        with self.account(world, LATENCY) as sandbox:
            walls = [taken.wall for taken in measure.measure_repeatedly(self.times, lambda: self._plan(world, sandbox))]
        longest = max(Counter(call.address.kind for call in worlds.all_creates(world).calls).values())
        limit = -(-longest // 100) * LATENCY + own.median
        what = f"plan of {size:,} at {LATENCY * 1000:.0f} ms, of the longest chain of pages + own time"
        yield Row(what, Figure.of([wall / limit for wall in walls]), "×", 1.1)

    def rounds(self, size: int = 50, latency: float = 1.0) -> Iterator[Row]:
        """How many times in turn a plan of few resources waits for the platform: all lists are read at once."""
        world = self.world(size)
        walls = []
        for late in (0.0, latency):
            with self.account(world, late) as sandbox:
                runs = measure.measure_repeatedly(self.times, lambda: self._plan(world, sandbox))
            walls.append(Figure.of([taken.wall for taken in runs]))
        own, late_walls = walls
        waited = Figure(
            *((wall - own.median) / latency for wall in (late_walls.median, late_walls.low, late_walls.high))
        )
        yield Row(f"plan of {size} at {latency:g} s, in times of it, without own time", waited, "×", 1.1)

    def targets(self, size: int = 10_000) -> Iterator[Row]:
        """Counted: requests of a plan of one kind, which reads what its selection, references and access need."""
        world = self.world(size)
        with self.account(world) as sandbox:
            counts = []
            for words in ((), ("--target", "ReservedDomain/*"), ("--target", "IPPolicy/*")):
                sandbox.forget_log()
                self._plan(world, sandbox, *words)
                counts.append(len(sandbox.log()))
        yield Row(f"requests of a no-op plan of {size:,}", Figure.of([counts[0]]), "requests")
        yield Row("… with --target 'ReservedDomain/*'", Figure.of([counts[1]]), "requests")
        yield Row("… with --target 'IPPolicy/*'", Figure.of([counts[2]]), "requests")

    def first_sign(self, size: int = 100) -> Iterator[Row]:
        """Seconds until a plan shows at a terminal what it does, of an account that takes two seconds to answer."""
        world, seconds = self.world(size), []
        with self.account(world, 2.0) as sandbox:
            for _ in range(self.times):
                words = measure.reconciler("plan", "--project", str(world.root))
                seconds.append(measure.time_to_first_output(words, _environment(sandbox)))
        yield Row("first output of a plan at a terminal, account slow", Figure.of(seconds), "s", 0.5)

    def fmt_check(self, size: int = 20_000) -> Iterator[Row]:
        """`fmt --check` of a project that is in form, in times of its `validate`."""
        world = worlds.project(self._folder / f"formatted-{size}", size)
        measure.run(measure.reconciler("fmt", "--project", str(world.root)), {})
        pairs = [
            tuple(
                measure.run(measure.reconciler(*words, "--project", str(world.root)), {"RECONCILER_API_KEY": "k"}).cpu
                for words in (("fmt", "--check"), ("validate",))
            )
            for _ in range(SLOW_TIMES)
        ]
        yield Row(f"fmt --check of {size:,}, CPU", Figure.of([formatted for formatted, _ in pairs]), "s")
        beside = Figure.of([formatted / validated for formatted, validated in pairs])
        yield Row("… in times of validate", beside, "×", 5)

    def access(self, size: int = 10_000) -> Iterator[Row]:
        """The analysis of access alone, where every network changes; without changes nothing is analyzed."""
        world = self.world(size)
        changed = worlds.with_new_networks(world, self._folder / f"networks-{size}")
        with self.account(world) as sandbox:
            unchanged, runs = (
                self._measure(lambda: self._analyze(root, sandbox), slow=True)  # noqa: B023 - called at once
                for root in (world.root, changed.root)
            )
        idle, figures = ([json.loads(run.output.splitlines()[-1]) for run in group] for group in (unchanged, runs))
        entries = figures[0]["entry points"]
        yield Row(f"access of {size:,}, {entries:,} entry points change, CPU", _take(figures, "access"), "s", 0.5)
        yield Row("… without changes, CPU", _take(idle, "access"), "s", 0.01)

    def _analyze(self, root: Path, sandbox: SandboxProcess) -> Taken:
        return measure.run([sys.executable, "-m", "tests.bench.access_run", str(root), sandbox.base_url])

    # --- applies --------------------------------------------------------------------------------------------------

    def applies(self, sizes: tuple[int, ...]) -> Iterator[Row]:
        """Ours, and after each a client that only sends, so that both meet the machine's moment."""
        for size in sizes:
            world, large = self.world(size), size >= 5_000
            least: list[Taken] = []
            runs = self._measure(lambda: self._applies(world, least), slow=large)  # noqa: B023 - called at once
            limit = max(DEPTH * LATENCY, size * LATENCY / AT_ONCE)
            cpu = Figure.of([run.cpu / size * 1000 for run in runs])
            wall = Figure.of([run.wall / limit for run in runs])
            beside = Figure.of([run.wall / thin.wall for run, thin in zip(runs, least[-len(runs) :], strict=True)])
            what = f"apply of {size:,} creates, {AT_ONCE} at once, {LATENCY * 1000:.0f} ms"
            # Of few creates the chain of those that wait for each other is a good part, which no limit of ours counts.
            yield Row(f"{what}, of the physical limit", wall, "×", 1.1 if large else None)
            yield Row(f"… of a client that remembers nothing, {size:,}", beside, "×", 1.05 if large else None)
            yield Row(f"… CPU per create of {size:,}", cpu, "ms", 0.6, ratio=_ratio(runs) / size)

    def _applies(self, world: SizedProject, least: list[Taken]) -> Taken:
        ours = self._creates(world, "engine_run")
        least.append(self._creates(world, "thin_run"))
        return ours

    def _creates(self, world: SizedProject, by: str) -> Taken:
        """What the creates themselves took, without the process around them."""
        with self.account(None, LATENCY) as sandbox, tempfile.TemporaryDirectory(dir=self._folder) as folder:
            store = [f"{folder}/store.db"] if by == "engine_run" else []
            words = [str(world.root), sandbox.base_url, *store, str(AT_ONCE)]
            taken = measure.run([sys.executable, "-m", f"tests.bench.{by}", *words])
        run = json.loads(taken.output.splitlines()[-1])
        return dataclasses.replace(taken, wall=run["wall"], cpu=run["cpu"])

    def updates(self, size: int = 1_540) -> Iterator[Row]:
        """Updates with their ownership checks, and after each run the same without any check."""
        world = self.world(size)
        changed = worlds.with_new_descriptions(world, self._folder / f"changed-{size}")
        runs: list[dict[str, float]] = []

        def run() -> Taken:
            taken, figures = self._update(changed, [])
            runs.append(figures)
            runs.append(self._update(changed, ["unchecked"])[1])
            return taken

        self._measure(run, slow=True)
        checked, unchecked = runs[::2], runs[1::2]
        calls, requests = checked[0]["calls"], checked[0]["requests"]
        pairs = list(zip(checked, unchecked, strict=True))
        wall = Figure.of([ours["wall"] / bare["wall"] for ours, bare in pairs])
        cpu = Figure.of([ours["cpu"] / bare["cpu"] for ours, bare in pairs])
        yield Row(f"requests of {calls:,} updates with ownership checks", Figure.of([requests]), "requests")
        yield Row("… in times of the requests without", Figure.of([requests / calls]), "×", 1.15)
        yield Row(f"… in times of the wall without, {AT_ONCE} at once, {LATENCY * 1000:.0f} ms", wall, "×", 1.15)
        yield Row("… in times of the CPU without", cpu, "×")

    def _update(self, changed: SizedProject, words: list[str]) -> tuple[Taken, dict[str, float]]:
        with self.account(changed, LATENCY) as sandbox, tempfile.TemporaryDirectory(dir=self._folder) as folder:
            run = ["tests.bench.update_run", str(changed.root), sandbox.base_url, f"{folder}/store.db", str(AT_ONCE)]
            taken = measure.run([sys.executable, "-m", *run, *words])
        return taken, json.loads(taken.output.splitlines()[-1])

    def plan_file_applies(self, small: int, size: int) -> Iterator[Row]:
        """`apply FILE` beside `apply`, of nothing but creates: what it takes to see that nothing moved meanwhile."""
        world = self.world(size)
        fresh: list[Taken] = []

        def run() -> Taken:
            fresh.append(self._apply(world, from_file=False))
            return self._apply(world, from_file=True)

        few = self._apply(self.world(small), from_file=True).cpu
        runs = self._measure(run, slow=True)
        cpu = Figure.of([run.cpu for run in runs])
        beside = Figure.of([file.cpu / other.cpu for file, other in zip(runs, fresh, strict=True)])
        slope = log10(cpu.median / few) / log10(size / small)
        yield Row(f"apply FILE of {size:,} creates, CPU", cpu, "s", ratio=_ratio(runs))
        yield Row("… in times of apply without a file", beside, "×", 1.3)
        yield Row(f"… slope of CPU from {small:,} to {size:,} (log-log)", Figure.of([slope]), "", 1.1)

    def _apply(self, world: SizedProject, *, from_file: bool) -> Taken:
        with self.account(None) as sandbox, tempfile.TemporaryDirectory(dir=self._folder) as folder:
            environment = _environment(sandbox, f"{folder}/store.db")
            root = ("--project", str(world.root))
            file = [f"{folder}/plan.json"] if from_file else []
            if from_file:
                measure.run(measure.reconciler("plan", *root, "--quiet", "--out", *file), environment)
            return measure.run(measure.reconciler("apply", *file, *root, "-y", "--quiet"), environment)

    # --- the command line -----------------------------------------------------------------------------------------

    def start_up(self) -> Iterator[Row]:
        theirs = None
        if terraform.is_here():
            theirs = Figure.of([taken.cpu for taken in measure.measure_repeatedly(self.times, self._terraform_version)])
            yield Row("`terraform version`, CPU", theirs, "s")
        completion = {"_RECONCILER_COMPLETE": "bash_complete", "COMP_WORDS": "reconciler pl", "COMP_CWORD": "1"}
        for name, words, environment in (
            ("`reconciler --version`", ["--version"], {}),
            ("`reconciler --help`", ["--help"], {}),
            ("completion of a command", [], completion),
        ):
            runs = measure.measure_repeatedly(self.times, lambda: measure.run(measure.reconciler(*words), environment))  # noqa: B023
            cpu = Figure.of([run.cpu for run in runs])
            target = 2 * theirs.median if theirs else 0.062
            yield Row(f"{name}, CPU", cpu, "s", target, ratio=_ratio(runs))

    def _terraform_version(self) -> Taken:
        return measure.run(["terraform", "version"], folder=self._folder)

    def validates(self) -> Iterator[Row]:
        for size, target in ((10, 0.14), (100, 0.35), (10_000, 1.0)):
            words = measure.reconciler("validate", "--project", str(self.world(size).root))
            runs = measure.measure_repeatedly(self.times, lambda: measure.run(words, {"RECONCILER_API_KEY": "k"}))  # noqa: B023
            cpu = Figure.of([run.cpu for run in runs])
            yield Row(f"validate {size:,}, CPU", cpu, "s", target, ratio=_ratio(runs))
            if size == 10_000:
                ratio = Figure.of([run.ratio for run in runs])
                yield Row("… in times of the yardstick", ratio, "×", 24.6)  # 0.75 of that of 2026-11-22

    # --- the sandbox ----------------------------------------------------------------------------------------------

    def sandbox_creates(self, count: int = 5_000) -> Iterator[Row]:
        bodies = [{"description": f"policy {number}", "metadata": '{"team":"bench"}'} for number in range(count)]
        posts = [wire.request("POST", "/ip_policies", worlds.KEY, body) for body in bodies]
        for what, durable, target in (("in memory", False, 2_000), ("durable", True, 500)):
            rates, work = [], []
            for _ in range(self.times):
                with tempfile.TemporaryDirectory(dir=self._folder) as folder, self._fresh(folder, durable) as sandbox:
                    before = measure.cpu_of(sandbox.process.pid)
                    rates.append(count / wire.press(sandbox.base_url, posts, AT_ONCE))
                    work.append(count / (measure.cpu_of(sandbox.process.pid) - before))
            # The client that presses it has the other core, if nobody else wants it.
            yield Row(f"sandbox, creates {what}, of its own CPU", Figure.of(work), "per s", target, at_least=True)
            yield Row("… beside a client on this machine", Figure.of(rates), "per s")

    def _fresh(self, folder: str, durable: bool) -> SandboxProcess:
        return SandboxProcess(db=f"{folder}/sandbox.db" if durable else ":memory:")

    def sandbox_pages(self, count: int) -> Iterator[Row]:
        """The last page of a list, in times of the first."""
        bodies = ({"description": f"policy {number}"} for number in range(count))
        posts = [wire.request("POST", "/ip_policies", worlds.KEY, body) for body in bodies]
        with SandboxProcess() as sandbox:
            wire.press(sandbox.base_url, posts, AT_ONCE)
            first_page = "/ip_policies?limit=100"
            ids = [policy["id"] for policy in sandbox.get(first_page)["ip_policies"]]
            deep = self._deep(sandbox, ids[-1], count)
            times = [(self._page(sandbox, first_page), self._page(sandbox, deep)) for _ in range(self.times)]
        what = f"sandbox, the last page of {count:,} in times of the first"
        yield Row(what, Figure.of([last / first for first, last in times]), "×", 1.5)

    def sandbox_accounts(self, count: int, objects: int = 20) -> Iterator[Row]:
        """Memory of a sandbox with many accounts, after the creates and a list of each account, with its budget."""
        with SandboxProcess(accounts=count, requests_per_minute=1_000) as sandbox:
            for number, key in enumerate(sandbox.accounts):
                sent = [wire.request("POST", path, key, body) for path, body in worlds.small_account(number, objects)]
                sent.append(wire.request("GET", "/ip_policies?limit=100", key))
                wire.press(sandbox.base_url, sent, 1)
            peak = measure.peak_of(sandbox.process.pid)
        what = f"sandbox, {count:,} accounts of {objects} objects, peak memory"
        yield Row(what, Figure.of([peak]), "MB", 1_000)

    def _deep(self, sandbox: SandboxProcess, before: str, count: int) -> str:
        path = f"/ip_policies?before_id={before}&limit=100"
        for _ in range(count // 100 - 2):
            following = sandbox.get(path)["next_page_uri"]
            if following is None:
                break
            path = following.removeprefix(sandbox.base_url)
        return path

    def _page(self, sandbox: SandboxProcess, path: str) -> float:
        return wire.press(sandbox.base_url, [wire.request("GET", path, worlds.KEY)] * 20, 1)

    # --- terraform ------------------------------------------------------------------------------------------------

    def terraform_plans(self, sizes: tuple[int, ...]) -> Iterator[Row]:
        """Theirs and ours one after the other, again and again, so that a busy machine is busy for both."""
        for size in sizes:
            folder = terraform.project(self._folder / f"terraform-{size}", size, applied=True)
            world, large = self.world(size), size >= 10_000
            with self.account(world) as sandbox:
                self._plan(world, sandbox)
                times = min(self.times, SLOW_TIMES) if large else self.times
                pairs = [(self._terraform_plan(folder), self._plan(world, sandbox)) for _ in range(times)]
            cpu, peak = Figure.of([taken.cpu for taken, _ in pairs]), Figure.of([taken.peak for taken, _ in pairs])
            points = {"resources": size, "seconds": cpu.median, "MB": peak.median, "terraform": 1.0}
            yield Row(f"terraform, no-op plan of {size:,}, CPU", cpu, "s", points=points)
            yield Row(f"terraform, no-op plan of {size:,}, peak memory", peak, "MB")
            faster = Figure.of([theirs.cpu / ours.cpu for theirs, ours in pairs])
            smaller = Figure.of([theirs.peak / ours.peak for theirs, ours in pairs])
            cpu_target, memory_target = {100: (1, None), 10_000: (35, 10)}.get(size, (None, None))
            yield Row(f"… in times of ours, CPU, {size:,}", faster, "×", cpu_target, at_least=True)
            yield Row(f"… in times of ours, memory, {size:,}", smaller, "×", memory_target, at_least=True)

    def _terraform_plan(self, folder: Path) -> Taken:
        taken = measure.run(["terraform", "plan", "-no-color", "-input=false"], folder=folder)
        assert "No changes" in taken.output, taken.output[-500:]
        return taken

    def terraform_applies(self, size: int) -> Iterator[Row]:
        folder = terraform.project(self._folder / "terraform-apply", size, applied=False)
        words = ["terraform", "apply", "-no-color", "-input=false", "-auto-approve", f"-parallelism={AT_ONCE}"]
        taken = measure.run(words, folder=folder)
        yield Row(f"terraform, CPU per create of {size:,}", Figure.of([taken.cpu / size * 1000]), "ms")


def _environment(sandbox: SandboxProcess, store: str | None = None) -> dict[str, str]:
    """Without `store`, the default one: in the folder `state` of the project."""
    named = {} if store is None else {"RECONCILER_STORE": store}
    return {"RECONCILER_BASE_URL": sandbox.base_url, "RECONCILER_API_KEY": worlds.KEY, **named}


def _take(figures: list[dict[str, float]], name: str) -> Figure:
    return Figure.of([figure[name] for figure in figures])


def _ratio(runs: list[Taken]) -> float:
    return statistics.median(run.ratio for run in runs)


def _pages(log: list[str]) -> int:
    lists = _list_paths()
    return sum(request.removeprefix("GET ").partition("?")[0] in lists for request in log if request.startswith("GET "))


def _list_paths() -> set[str]:
    return {kind.path for kind in kinds.every() if kind.parent is None}


def _count_pages(sandbox: SandboxProcess, path: str) -> int:
    following, count = f"{path}?limit=100", 0
    while following:
        found, count = sandbox.get(following.removeprefix(sandbox.base_url)), count + 1
        following = found["next_page_uri"]
    return count


def _slopes(points: list[dict[str, float]]) -> Iterator[Row]:
    first, last = points[0], points[-1]
    decades = log10(last["resources"] / first["resources"])
    slope = (log10(last["seconds"]) - log10(first["seconds"])) / decades
    per_resource = (last["MB"] - first["MB"]) * 1024 / (last["resources"] - first["resources"])
    span = f"from {first['resources']:,.0f} to {last['resources']:,.0f}"
    yield Row(f"no-op plan, slope of CPU {span} (log-log)", Figure.of([slope]), "", 1.1)
    yield Row(f"no-op plan, memory {span}", Figure.of([per_resource]), "KB a resource", 6)
