"""Documentation and code use the terms of the glossary: no retired phrase, and functions are named by verbs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Pages that are covered. Generated pages take their text from code and help.
COVERED = ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")
GENERATED = ("docs/errors.md", "docs/fleet-file.md", "docs/project-file.md", "docs/kinds", "docs/decisions/README.md")

# Folders of code that are covered: text, comments, docstrings, templates, and names of functions.
SWEPT = ("examples", "reconciler", "tests")

# Names in the store that never change: retired phrases in them are not read by users.
STORED_NAMES = frozenset({"mover"})

# Participles that do not end in -ed or -ing. Those that are also the verb itself (read, run, set) are not listed.
_IRREGULAR = """
    begun born bought bound broken brought built caught chosen done drawn driven fallen felt forgotten found given gone
    grown heard held hidden kept known laid led left lent lost made meant met mistaken paid proven seen sent shown sold
    spelt spent spoken stood stolen sworn taken taught thought thrown told torn understood undone won worn written
"""
IRREGULAR = frozenset(_IRREGULAR.split())
VERBS = frozenset({"bring", "embed", "exceed", "feed", "need", "ping", "proceed", "seed", "string", "succeed"})
NOUNS = frozenset({"heading", "listing", "setting", "rendering", "spelling"})

# Names of variables and parameters that stand for a noun and tell nothing.
VAGUE = frozenset({"each", "said", "shown", "there", "told", "whose"})

# Household words, which no name of a test or a class of tests contains, with the field's words for them.
HOUSEHOLD = {
    "anew": "again",
    "asked asks": "requested, prompted",
    "alone": "unchanged, not managed",
    "bears belongs": "has, is managed by",
    "came comes": "is returned, is received",
    "everybody nobody somebody anybody whoever whose whom": "name the subject",
    "gives given": "set, returned, passed",
    "goes gone went": "is deleted, is removed",
    "hands handed": "passed",
    "heard hears unheard": "received, ignored",
    "keeps kept": "remains, is unchanged",
    "knows": "name what is recorded",
    "lets let": "is detached, is removed",
    "lies lie": "is, is stored",
    "looks looked": "is read, is refreshed",
    "makes made": "creates, created",
    "meanwhile": "during the apply",
    "meets met": "is satisfied, is covered",
    "ours theirs": "managed by the stack, by another stack",
    "says said saying": "reports, prints",
    "speaks spoken": "prints, uses",
    "stays stay stayed": "remains, is unchanged",
    "strangers stranger": "unmanaged",
    "tells tell told": "reports, is reported",
    "took": "is used",
    "there": "exists",
}
# A name of a test is a sentence, whose subject is a noun.
NO_SUBJECT = frozenset({"of", "what", "whatever", "which", "who"})

# Retired phrase (a regular expression, in any case) and its replacement.
RETIRED = {
    r"at stake": "risks",
    r"can(not|'t) be had( back)?": "irreversible; cannot be recovered",
    r"(goes|went|go) unheard": "ignored",
    r"\bmovers?\b": "changed by",
    r"who moved": "what changed",
    r"what moved": "what changed on the platform",
    r"\bconsents?\b": "approval",
    r"\bwho(m|mso)?ever\b": "everyone who, a user who; or name the program",
    r"\btwins?\b": "alias",
    r"tombstones?": "`ensure: absent`",
    r"\b(a|each|every|first|second|third|fourth|last|recorded|later|next) looks?\b": "refresh, snapshot or drift check",
    r"\bstand-in\b": "local emulator",
    r"(belongs?|belonging) to nobody": "is not managed by any stack",
    r"(nobody|no one) (declares|owns)": "not declared; not managed by any stack",
    r"behind Git's back": "outside Git",
    r"made anew": "replaced, or created again",
    r"left alone": "not managed, or unchanged",
    r"whose (an|the) object is": "ownership",
    r"a ring of": "circular",
    r"is told (at|as|by|of|from|on)\b": "reported, or recognized",
    r"as (was|it was|they were) told": "as configured",
    r"(cannot|can|could|not) be (told|reasons|reports|prints)\b(?! apart)": "is unknown",
    r"everybody": "everyone",
    r"(carried|carries|carry) out": "apply, execute",
    r"broke off": "failed, blocked or aborted",
    r"keep equal": "reconcile",
    r"unless (said|told) otherwise": "[default: …]",
    r"the way out": "the remedy",
    r"\bspel(l|ls)\b": "drift period",
}


def pages() -> list[Path]:
    found = (
        page for name in COVERED for page in ([ROOT / name] if name.endswith(".md") else (ROOT / name).rglob("*.md"))
    )
    return sorted(page for page in found if not page.relative_to(ROOT).as_posix().startswith(GENERATED))


def prose(page: str) -> str:
    """A page without code blocks and inline code, in which line numbers are kept: output is not the page's own text."""
    without_blocks = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"`[^`\n]*`", "`…`", without_blocks)


PATTERNS = {re.compile(phrase.lower().replace(" ", r"\s+")): instead for phrase, instead in RETIRED.items()}


def retired_phrases(text: str) -> list[str]:
    """Each retired phrase in a text, with its line and its replacement."""
    lowered = text.lower()  # a search that ignores case takes ten times as long
    return [
        f"line {lowered.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write: {replacement}"
        for pattern, replacement in PATTERNS.items()
        for match in pattern.finditer(lowered)
    ]


def retired_phrases_of_code(source: str) -> list[str]:
    """Those in the string literals and comments of a module. Most modules have none anywhere."""
    return retired_phrases(readable_text(source)) if retired_phrases(source) else []


def code_files(suffix: str) -> list[Path]:
    files = (file for folder in SWEPT for file in (ROOT / folder).rglob(f"*{suffix}"))
    return sorted(file for file in files if file != Path(__file__))


def modules_by_package() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for file in code_files(".py"):
        found.setdefault(file.parent.relative_to(ROOT).as_posix(), []).append(file)
    return found


def readable_text(source: str) -> str:
    """The string literals and comments of a module, each at its own line."""
    lines = [""] * (source.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) and token.string.strip('"') not in STORED_NAMES:
            for offset, line in enumerate(token.string.split("\n")):
                lines[token.start[0] - 1 + offset] += f" {line}"
    return "\n".join(lines)


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith(("ed", "ing")) and word not in VERBS | NOUNS)


@lru_cache(maxsize=1)
def list_nodes(source: str) -> list[ast.AST]:
    """The syntax tree of a module; kept for the next check of the same module."""
    return [*ast.walk(ast.parse(source))]


def vague_names(source: str) -> Iterator[str]:
    for node in list_nodes(source):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE:
                yield f"line {node.lineno}: {name}"


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a fixture, whose name is that of its value."""
    return any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)


def participle_names(source: str) -> Iterator[str]:
    """Functions that begin with a participle. A property is a value: `missing_approvals` may, `sealed` may not."""
    for node in list_nodes(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_fixture(node):
            first, _, rest = node.name.strip("_").partition("_")
            if is_participle(first) and not (rest and is_property(node)):
                yield f"line {node.lineno}: {node.name}"


def household_names(source: str) -> Iterator[str]:
    """Names of tests that have a household word, or a pronoun as the subject."""
    field_words = {word: instead for words, instead in HOUSEHOLD.items() for word in words.split()}
    for node in list_nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        _, subject, *others = node.name.split("_")
        if subject in NO_SUBJECT:
            yield f"line {node.lineno}: {node.name}; write: a noun as the subject instead of {subject}"
        for word in (subject, *others):
            if word in field_words:
                yield f"line {node.lineno}: {node.name}; write: {field_words[word]} instead of {word}"


DEFINED = re.compile(r"^\s*(?:async )?def _*(([a-z0-9]+)\w*)", re.MULTILINE)
STORED = re.compile(rf"\b(?:{'|'.join(sorted(VAGUE))})\b\s*(?:[=,:)\]]|in\b)")


def poor_names(source: str) -> list[str]:
    """Names of functions, tests and variables that say too little. Parses only a module whose text may have one."""
    found = DEFINED.findall(source)
    words = {word for name, first in found if first == "test" for word in name.split("_")}
    checks = {
        participle_names: any(is_participle(first) for _, first in found),
        vague_names: STORED.search(source) is not None,
        household_names: not words.isdisjoint({*NO_SUBJECT, *(word for words in HOUSEHOLD for word in words.split())}),
    }
    return [name for check, may_find in checks.items() if may_find for name in check(source)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_retired_phrase(page: Path) -> None:
    assert retired_phrases(prose(page.read_text(encoding="utf-8"))) == []


def test_a_retired_phrase_is_reported_with_its_replacement() -> None:
    text = prose("```\nat stake\n```\nWhat is `at stake` is\nwhat is at\nstake.\n")
    assert retired_phrases(text) == ["line 5: 'at\\nstake'; write: risks"]


@pytest.mark.parametrize(
    ("package", "files"), modules_by_package().items(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_modules_have_plain_words_and_names(package: str, files: list[Path]) -> None:
    sources = {file.name: file.read_text(encoding="utf-8") for file in files}
    found = {name: [*retired_phrases_of_code(source), *poor_names(source)] for name, source in sources.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("suffix", [".html", ".md", ".css", ".js", ".j2"])
def test_a_template_has_no_retired_phrase(suffix: str) -> None:
    found = {file: retired_phrases(file.read_text(encoding="utf-8")) for file in code_files(suffix)}
    assert {file: phrases for file, phrases in found.items() if phrases} == {}


def test_a_retired_phrase_is_found_in_text_and_comments_and_not_in_names() -> None:
    source = 'at = stake\nx = """What\nis At Stake"""\nat_stake = 1  # who moved it\n'
    assert retired_phrases_of_code(source) == [
        "line 3: 'at stake'; write: risks",
        "line 4: 'who moved'; write: what changed",
    ]


def test_participles_are_found_and_verbs_are_not() -> None:
    source = """
class Call:
    @property
    def missing_approvals(self): ...
    @property
    def sealed(self): ...
    def _shown(self): ...
    def read(self): ...
def render_plan(): ...
def planned(manifest): ...
def missing(field): ...
"""
    names = {"line 6: sealed", "line 7: _shown", "line 10: planned", "line 11: missing"}
    assert set(poor_names(source)) == names


def test_vague_names_are_found() -> None:
    assert set(poor_names("for each in calls: there = each\nlambda told: told")) == {
        "line 1: each",
        "line 1: there",
        "line 2: told",
    }


def test_household_names_are_found() -> None:
    source = "def test_what_the_stack_owns_stays(): ...\ndef test_a_plan_is_told(): ...\ndef test_a_plan_is_read(): ..."
    assert [found.partition(";")[0] for found in poor_names(source)] == [
        "line 1: test_what_the_stack_owns_stays",
        "line 1: test_what_the_stack_owns_stays",
        "line 2: test_a_plan_is_told",
    ]
