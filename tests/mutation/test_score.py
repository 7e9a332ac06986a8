"""The instrument is tested: on a small repository, it reports exactly the mutants that no test catches."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_item import MutationSpec

from tests.harness.tiers import full
from tests.mutation.__main__ import ROOT, main
from tests.mutation.covering import Record, Source, choose_tests
from tests.mutation.mutants import draw_sample, find_mutants, mutate
from tests.mutation.operators import OWN
from tests.mutation.planting import find_planted, load_bugs, plant
from tests.mutation.score import Limits, Verdict, load_equivalents, render_report

SOURCE = """\
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sized

STEP = 2
ALIAS = list[int | None]


def add(a: int | None, b: int) -> int:
    return a + b


def is_small(size: int) -> bool:
    return size < 10


def step(number: int) -> int:
    return number + STEP


def empty(queue: list | Sized) -> None:
    while queue:
        queue.pop()


def is_unused(value: bool) -> bool:
    return not value
"""
TESTS = """\
from reconciler.tiny import add, empty, is_small, step


def test_add():
    assert add(5, 3) == 8


def test_is_small():
    is_small(-90)


def test_step():
    assert step(6) == 8


def test_empty():
    queue = [1]
    empty(queue)
    assert queue == []
"""
CONFTEST = """\
from hypothesis import settings

settings.register_profile("mutation")
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny")
    files = {
        ".gitignore": "/build/\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib", "-p", "no:schemathesis"]\n',
        "reconciler/__init__.py": "",
        "reconciler/tiny.py": SOURCE,
        "tests/conftest.py": CONFTEST,
        "tests/test_tiny.py": TESTS,
        "tests/mutation/recorder.py": Path(__file__).with_name("recorder.py").read_text(),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all", "--no-verify"]):
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=root, check=True)
    return root


def report(repository: Path, *words: str) -> dict[str, Counter[str]]:
    """The statuses of the mutants, by function."""
    main(["reconciler", "--count", "99", "--workers", "2", *words], repository, Limits(least=0.5))
    statuses: dict[str, Counter[str]] = {}
    for verdict in json.loads((repository / "build/mutation/report.json").read_text()):
        statuses.setdefault(verdict["definition"], Counter())[verdict["status"]] += 1
    return statuses


@full
def test_mutants_that_no_test_catches_are_reported(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (repository / "reconciler/tiny.py").read_text()
    statuses = report(repository)
    assert (repository / "reconciler/tiny.py").read_text() == before, "mutants belong in a copy"
    assert statuses["add"] == {"caught": 1}, "an annotation is not mutated"
    assert statuses["step"] == {"caught": 1}
    assert statuses[""] == {"caught": 2}, "what runs at import is tested by what uses it, and by the import"
    assert set(statuses["is_small"]) == {"survived"}, "its test asserts nothing"
    assert set(statuses["is_unused"]) == {"survived"}
    assert statuses["empty"]["timeout"] == 1
    text = (repository / "build/mutation/report.md").read_text()
    assert "reconciler/tiny.py:30 is_unused · ReplaceUnaryOperator_Delete_Not · no test runs it" in text
    assert "-    return not value\n+    return  value" in text
    assert "| reconciler | 9 |" in capsys.readouterr().out

    assert report(repository, "--report") == statuses, "the session keeps the results"
    capsys.readouterr()
    assert report(repository) == statuses
    assert "tiny.py" not in capsys.readouterr().out, "nothing is tried twice"


def test_the_seed_of_the_sample_is_the_commit(repository: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    main(["reconciler", "--count", "0", "--report"], repository)
    heading = (repository / "build/mutation/report.md").read_text().splitlines()[0]
    assert heading == f"# Mutation score of {commit.stdout[:12]}, seed {commit.stdout[:12]}"


def test_code_that_runs_at_import_is_tested_by_tests_that_import_the_module(tmp_path: Path) -> None:
    files = {
        "reconciler/store/tables.py": "TABLES = [1]\nNUMBER = 2\n",
        "reconciler/store/files.py": "from reconciler.store import tables\n\nFILES = tables.TABLES\n",
        "reconciler/store/late.py": "def load():\n    from reconciler.store import tables\n",
        "tests/store/test_tables.py": "from reconciler.store.tables import TABLES\n",
        "tests/plan/test_tables.py": "from reconciler.store import tables\n",
        "tests/store/test_files.py": "from reconciler.store.files import FILES\n",
        "tests/store/test_late.py": "from reconciler.store.late import load\n",
        "tests/test_program.py": "import reconciler\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    passed = [
        {"test": f"{file}::test_{number}", "passed": True, "cpu": 0.1 * number}
        for file in files
        if file.startswith("tests/")
        for number in (1, 2)
    ]
    (tmp_path / "tests-1.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in passed))
    mutant = MutationSpec(Path("reconciler/store/tables.py"), "core/NumberReplacer", 1, (2, 9), (2, 10))
    chosen = choose_tests(mutant, Record(tmp_path), Source(tmp_path))
    near, own = "tests/test_program.py", "tests/store/test_tables.py"  # own tests also have each second turn
    first = [f"{near}::test_1", f"{own}::test_1", f"{own}::test_2", f"{near}::test_2"]
    others = ["tests/plan/test_tables.py", "tests/store/test_files.py"]
    assert chosen == [*first, *(f"{file}::test_{number}" for file in others for number in (1, 2))]


def test_lines_that_run_in_other_processes_are_tested_by_the_tests_of_the_module(tmp_path: Path) -> None:
    module = tmp_path / "reconciler/cli/applying/bar.py"
    module.parent.mkdir(parents=True)
    module.write_text("def render():\n    return 1\n")
    files = ("tests/cli/test_bar.py", "tests/cli/test_applying.py", "tests/store/test_bar.py")
    passed = [{"test": f"{file}::test", "passed": True, "cpu": 0.1} for file in files]
    (tmp_path / "tests-1.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in passed))
    mutant = MutationSpec(Path("reconciler/cli/applying/bar.py"), "core/NumberReplacer", 0, (2, 11), (2, 12))
    chosen = choose_tests(mutant, Record(tmp_path), Source(tmp_path))
    assert chosen == ["tests/cli/test_bar.py::test", "tests/cli/test_applying.py::test"]


def test_a_topic_that_covers_a_package_covers_its_modules(tmp_path: Path) -> None:
    module = tmp_path / "reconciler/cli/commands/forget.py"
    module.parent.mkdir(parents=True)
    module.write_text("WORDS = 1\n")
    entry = {"test": "tests/cli/test_shared_options.py::test", "passed": True, "cpu": 0.1}
    (tmp_path / "tests-1.jsonl").write_text(json.dumps(entry))
    mutant = MutationSpec(Path("reconciler/cli/commands/forget.py"), "core/NumberReplacer", 0, (1, 8), (1, 9))
    assert choose_tests(mutant, Record(tmp_path), Source(tmp_path)) == [entry["test"]]


def population(**sizes: int) -> dict[str, list[list[MutationSpec]]]:
    def mutant(package: str, line: int, operator: str) -> MutationSpec:
        return MutationSpec(Path(f"{package}.py"), operator, 0, (line, 0), (line, 1))

    return {
        package: [[mutant(package, line, operator) for operator in ("a", "b")] for line in range(1, size + 1)]
        for package, size in sizes.items()
    }


def draw(count: int, seed: str) -> list[str]:
    sample = draw_sample(population(large=300, small=100), count, seed, lambda mutant: mutant.start_pos[0] != 7)
    assert list(sample) == ["large", "small"]
    return [
        f"{item.mutations[0].module_path}:{item.mutations[0].start_pos[0]}" for part in sample.values() for item in part
    ]


def test_the_same_seed_draws_the_same_sample() -> None:
    assert draw(40, "one") == draw(40, "one")
    assert set(draw(40, "one")) != set(draw(40, "two"))


def test_a_sample_is_spread_in_proportion_and_grows_at_its_end() -> None:
    some, more = draw(40, "one"), draw(80, "one")
    assert Counter(place.partition(".")[0] for place in some) == {"large": 30, "small": 10}
    assert some[:30] == more[:30]
    assert some[30:] == more[60:70]
    assert len(set(more)) == 80, "each place once"
    assert not {"large.py:7", "small.py:7"} & set(draw(400, "one")), "what is no program is not drawn"


@pytest.mark.parametrize("operator", OWN.values(), ids=OWN)
def test_operators_change_their_examples(operator: Any) -> None:
    for example in operator.examples():
        assert mutate_code(example.pre_mutation_code, operator(), example.occurrence) == example.post_mutation_code


def test_a_change_without_effect_on_the_program_is_no_mutant() -> None:
    source = "def f(**k):\n    return {**k, 'a': 1}\n"
    broken = [mutant for variants in find_mutants(source, Path("f.py")).values() for mutant in variants]
    assert [mutant for mutant in broken if "Pow" in mutant.operator_name]
    assert not [mutant for mutant in broken if "Pow" in mutant.operator_name and mutate(source, mutant)]


def test_equivalent_mutants_are_counted_apart() -> None:
    verdict = Verdict("a", "a/b.py", 1, "f", "AddNot", "caught", "-x\n+y", "t", 1, 1, "")
    statuses = ("caught", "caught", "caught", "survived", "equivalent", "timeout")
    report = render_report([Verdict(**{**vars(verdict), "status": status}) for status in statuses], "# S")
    assert "| a | 6 | 3 | 1 | 1 | 1 | 75.0 % |" in report


def test_each_equivalent_mutant_has_an_argument_and_is_still_in_the_source() -> None:
    for entry in load_equivalents():
        assert len(entry.why) > 20, entry
        assert Path(entry.file).is_file(), entry


def test_a_planted_bug_is_tried_at_the_line_that_it_changes(tmp_path: Path) -> None:
    (tmp_path / "reconciler").mkdir()
    (tmp_path / "reconciler/tiny.py").write_text(SOURCE)
    planted = tmp_path / "planted.toml"
    planted.write_text(
        '[[bug]]\nname = "a sum is a difference"\nfile = "reconciler/tiny.py"\n'
        'old = "-> int:\\n    return a + b\\n"\nnew = "-> int:\\n    return a - b\\n"\n'
        '[[bug]]\nname = "gone"\nfile = "reconciler/tiny.py"\nold = "nowhere"\nnew = ""\n'
    )
    found, gone = find_planted(tmp_path, planted)
    assert [bug.name for bug in gone] == ["gone"]
    ((item,),) = found.values()
    (mutant,) = item.mutations
    assert SOURCE.splitlines()[mutant.start_pos[0] - 1] == "    return a + b"
    mutated = plant(SOURCE, mutant.operator_name, planted)
    assert mutated is not None
    assert mutated == SOURCE.replace("a + b", "a - b")
    assert plant(mutated, mutant.operator_name, planted) is None


def test_the_planted_bugs_have_each_a_name_and_change_a_file_of_the_product() -> None:
    bugs = load_bugs()
    assert len(bugs) >= 80
    for bug in bugs.values():
        assert bug.old != bug.new
        assert (ROOT / bug.file).is_file(), bug
