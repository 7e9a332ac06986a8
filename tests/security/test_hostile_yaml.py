"""Manifests that would exhaust a reader are refused with little work: at most that of a few thousand ordinary
resources, of which a file may have more, and 50 MB of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from reconciler.languages.yaml.errors import MAX_BYTES

# Work is counted in times of a thousand ordinary resources, read by the same process. The bounds tell linear work from
# quadratic work, which takes hundreds; `make bench` measures the factors.
MOST_WORK, MOST_MB = 20, 50
MISTAKES = 3_000  # of a file
M = MAX_BYTES
HEAD = b"kind: IPPolicy\nname: a\nspec:\n"


def _repeat(text: bytes, size: int = M) -> bytes:
    return (text * (size // len(text) + 1))[:size]


BOMBS: dict[str, Callable[[], bytes]] = {
    "aliases that double": lambda: (
        b"a0: &a0 [x,x]\n" + b"".join(b"a%d: &a%d [*a%d,*a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 60))
    ),
    "aliases of one large list": lambda: b"a: &a [" + b"x," * 50_000 + b"]\nb: [" + b"*a ," * 50_000 + b"]",
    "aliases of maps": lambda: b"a: &a {x: 1, y: 2}\n" + b"".join(b"k%d: *a\n" % n for n in range(30_000)),
    "an alias inside what it names": lambda: b"a: &a [*a]",
    "lists in lists": lambda: _repeat(b"["),
    "maps in maps": lambda: _repeat(b"{a: "),
    "dashes": lambda: _repeat(b"- "),
    "steps": lambda: b"\n".join(b" " * n + b"a:" for n in range(4000)),
    "question marks": lambda: _repeat(b"? "),
    "colons": lambda: _repeat(b": "),
    "quotes": lambda: _repeat(b'"'),
    "a huge plain text": lambda: b"a: " + b"x" * (M - 3),
    "a huge quoted text": lambda: b'a: "' + b"x" * (M - 5) + b'"',
    "a huge text of escapes": lambda: b'a: "' + _repeat(rb"\u0041", M - 5 - (M - 5) % 6) + b'"',
    "a huge folded text": lambda: b"a: >\n" + _repeat(b" xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", M - 5),
    "a huge key": lambda: b"x" * (M - 3) + b": 1",
    "a huge number": lambda: b"a: " + b"1" * (M - 3),
    "a huge tag": lambda: b"a: !" + b"x" * (M - 6) + b" 1",
    "a huge alias": lambda: b"a: *" + b"x" * (M - 4),
    "a huge directive": lambda: _repeat(b"%YAML 1.2\n"),
    "a huge reference": lambda: HEAD + b"  description: '" + b"${{ " * (M // 4 - 20) + b"'",
    "a text that never closes": lambda: b"['" + _repeat(b"abcdefghijklmnopqrstuvwxyz\n", M - 2),
    "one word after the other": lambda: b"{" + _repeat(b"a ", M - 1),
    "millions of keys": lambda: b"".join(b"k%d: 1\n" % n for n in range(1_000_000))[:M],
    "millions of items": lambda: b"a: [" + _repeat(b"x,", M - 5) + b"]",
    "millions of anchors": lambda: b"".join(b"- &a%d x\n" % n for n in range(1_000_000))[:M],
    "millions of lines": lambda: _repeat(b"\n"),
    "millions of comments": lambda: _repeat(b"#\n"),
    "millions of documents": lambda: _repeat(b"---\n"),
    "thousands of documents": lambda: b"--- a\n" * 21_000,
    "the same key": lambda: _repeat(b"a: 1\n"),
    "the same key in a smaller file": lambda: b"a: 1\n" * 100_000,
    "keys that are no text": lambda: b"".join(b"%d: 1\n" % n for n in range(100_000)),
    "tags": lambda: b"- !x a\n" * 100_000,
    "large characters": lambda: b"a: '" + "\U0001f600".encode() * (M // 4 - 10) + b"'",
    "one large character": lambda: b"a: '" + b"x" * (M - 20) + "\U0001f600".encode() + b"'",
    "a control at the end": lambda: b"a" * (M - 1) + b"\x01",
    "no UTF-8 at the end": lambda: b"a" * (M - 1) + b"\xff",
    "too large": lambda: b"a" * (M + 1),
    "UTF-16": lambda: ("a: 1\n" * 100_000).encode("utf-16"),
    "NUL": lambda: b"\0" * M,
}

# One process reads what it takes to read a file, and then each text in a child of its own, which ends with it. Its
# measure is the least of three, of which the last one was taken just before.
_MEASURING = """
import collections, gc, json, os, resource, sys, time
from reconciler import kinds
from tests.project.texts import load_texts
from reconciler.model.problem import Rejected
def memory(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
def measure(text, measure):
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    open("/proc/self/clear_refs", "w").write("5")  # resets the peak of memory
    held = memory("VmHWM")
    began = time.process_time()
    said = []
    try:
        load_texts({"bomb.yaml": text}, "prod", {})
    except Rejected as rejected:
        said = [str(problem) for problem in rejected.problems]
    spent = time.process_time() - began
    grown = memory("VmHWM") - held
    return [spent / measure, grown / 1024, len(said), max(map(len, said), default=0)]
def seconds():
    began = time.process_time()
    load_texts({"ordinary.yaml": ordinary}, "prod", {})
    return time.process_time() - began
one = b"---\\nkind: IPPolicy\\nname: a%d\\nspec: {description: of a thousand}\\n"
ordinary = b"".join(one % n for n in range(1000))
gc.set_threshold(1_000_000, 20, 100)  # as the command line does
kinds.every()
try:
    load_texts({"warm.yaml": b"kind: IPPolicy\\nname: a\\nspec: {x: 1}\\n"}, "prod", {})
except Rejected:
    pass
measures = collections.deque((seconds() for _ in range(2)), maxlen=3)
while size := sys.stdin.buffer.readline():
    text = sys.stdin.buffer.read(int(size))
    measures.append(seconds())
    gc.collect()
    gc.freeze()
    child = os.fork()
    if not child:
        print(json.dumps(measure(text, min(measures))), flush=True)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print(json.dumps(f"ended with {os.waitstatus_to_exitcode(status)}"), flush=True)
"""

Measured = Callable[[bytes], tuple[float, float, int, int]]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    """A function from a text to work, megabytes beyond the file itself, problems, and the longest of them."""
    with subprocess.Popen([sys.executable, "-c", _MEASURING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, says = process.stdin, process.stdout

        def measure(text: bytes) -> tuple[float, float, int, int]:
            asks.write(b"%d\n" % len(text) + text)
            asks.flush()
            found = json.loads(says.readline())
            assert isinstance(found, list), found
            spent, grown, problems, longest = found
            return spent, grown, problems, longest

        yield measure


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_little_work_and_memory(name: str, measured: Measured) -> None:
    spent, grown, problems, longest = measured(BOMBS[name]())
    for _ in range(2):  # others may have been using the machine's caches: the best of three is what it takes
        if spent > MOST_WORK or grown > MOST_MB:
            spent, grown = map(min, (spent, grown), measured(BOMBS[name]())[:2])
    print(f"{name}: {spent:.1f} times a thousand resources, {grown:.0f} MB, {problems} problems")
    assert problems > 0
    assert spent <= MOST_WORK
    assert grown <= MOST_MB
    assert longest < 400


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unknown fields", HEAD + b"".join(b"  k%d: 1\n" % n for n in range(MISTAKES))),
        ("long unknown fields", HEAD + b"".join(b"  " + b"k%d" % n * 20 + b": 1\n" for n in range(MISTAKES))),
        (
            "misspelt references",
            HEAD + b"  metadata: '" + b"".join(b"${{ IPPolicy/x%d }}" % n for n in range(MISTAKES)) + b"'",
        ),
        (
            "references to nowhere",
            b"kind: IPRestriction\nname: a\nspec:\n  type: api\n  ip_policy_ids:\n"
            + b"".join(b"  - {ref: IPPolicy/x%d}\n" % n for n in range(MISTAKES)),
        ),
        ("unknown kinds", b"---\nkind: Nope\nname: a\n" * MISTAKES),
        ("the same resource", b"---\nkind: IPPolicy\nname: a\nspec: {}\n" * MISTAKES),
        (
            "misspelt names",
            b"".join(b"---\nkind: IPPolicy\nname: a%d\nspec: {descriptio: x}\n" % n for n in range(MISTAKES)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_of_mistakes_takes_time_in_proportion_to_its_size(name: str, text: bytes, measured: Measured) -> None:
    """A report of a mistake takes time, and a file may consist of mistakes: the time is in proportion to its size."""
    spent, grown, problems, longest = measured(text)
    print(f"{name}: {len(text) / 1e6:.1f} MB, {spent:.1f} times a thousand, {grown:.0f} MB, {problems} problems")
    assert problems > 0
    assert spent < 2 * (10 + 100 * len(text) / 1e6)
    assert longest < 1000
