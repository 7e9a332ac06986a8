"""Compares two states of an account: which requests get through now and did not, and which no longer do.

before, after = Account(resources, builder), Account(others, builder)
for change in compare(before, after): print(change.verdict, change.region, change.witness)
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Iterator, Set
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import PARTS, Account, Resource
from reconciler.access.conditions import Certificate, Claim, Login, Method, Token
from reconciler.access.entering import EntryPoint, enter_part, enter_path, enter_publicly, enter_wildcard
from reconciler.access.networks import unmap
from reconciler.access.places import Door, Region, cut_paths, fold_case
from reconciler.access.programs import PASS, REFUSE, Branch, Builder, Program, conditions_of
from reconciler.access.search import Found, Request, find_gained, passes_any
from reconciler.access.witness import MAPPED_ADDRESS, TOO_LARGE, describe_request
from reconciler.model.access import read_list
from reconciler.model.access_change import Verdict
from reconciler.model.value import Secret
from reconciler.model.value import digest as digest_secret


class Difference(Struct, frozen=True):
    """The change of one entry point.

    before, after   who gets through; None: there is no way in
    witness         a request that shows the difference, in words; empty if there is none to show
    is_certain      the witness holds whatever the facts are that are not known
    depends_on      if it is not certain: these facts
    example         the properties of the witness; None if there is none to show
    """

    region: Region
    verdict: Verdict
    before: EntryPoint | None
    after: EntryPoint | None
    witness: str
    is_certain: bool
    depends_on: tuple[str, ...] = ()
    example: Request | None = None

    @property
    def uses(self) -> frozenset[str]:
        """The names of the resources that decide about the entry point, before or after."""
        return (self.before.uses if self.before else frozenset()) | (self.after.uses if self.after else frozenset())


def analyze(account: Account) -> tuple[EntryPoint, ...]:
    """Every entry point of an account, with who gets through. A path that is served as those below it is no own one."""
    found = {region: after for region, _, after in _regions(account, account) if after is not None}
    return tuple(
        replace(entry, region=region)
        for region, entry in found.items()
        if region.below or not _is_same(entry, found.get(replace(region, below=True)))
    )


def _is_same(entry: EntryPoint, other: EntryPoint | None) -> bool:
    return other is not None and entry.program is other.program


def compare(before: Account, after: Account) -> tuple[Difference, ...]:
    """Each entry point that changes, the gravest first. Both states share one builder."""
    assert before.builder is after.builder
    judge = _Judge(before, after)
    judged = [
        found
        for region, one, other in _regions(before, after)
        if (found := judge.decide(region, one, other)) is not None
    ]
    changes = [judge.describe(found) for found in _merge(judged)]
    return tuple(sorted(changes, key=lambda change: (_ORDER[change.verdict], change.region)))


_ORDER = {verdict: number for number, verdict in enumerate(Verdict)}


def _regions(before: Account, after: Account) -> Iterator[tuple[Region, EntryPoint | None, EntryPoint | None]]:
    """The regions that the entry points of both states define, with each state's entry point."""
    hosts: dict[Door, set[str]] = {}
    for account in (before, after):
        for door, host in account.hosts():
            hosts.setdefault(door, set()).add(host)
    for door, patterns in sorted(hosts.items()):
        for pattern in sorted(patterns):
            paths = before.list_paths(door, pattern) | after.list_paths(door, pattern)
            mentioned = fold_case(paths)
            known: dict[object, tuple[EntryPoint | None, EntryPoint | None]] = {}
            for path, below in cut_paths(paths):
                region = Region(door, pattern, path, below)
                example = region.example_path(mentioned)
                if not paths:
                    yield region, _enter(before, region, example), _enter(after, region, example)
                    break
                routes = before.choose_routes(region, example), after.choose_routes(region, example)
                if routes not in known:  # other paths of the same routes are served in the same way
                    known[routes] = _enter(before, region, example), _enter(after, region, example)
                yield region, *known[routes]
    yield from _parts(before, after)
    yield from _openers(before, after)


def _enter(account: Account, region: Region, path: str) -> EntryPoint | None:
    return enter_path(account, region, path) if account.has_way_in(region) else None


def _parts(before: Account, after: Account) -> Iterator[tuple[Region, EntryPoint | None, EntryPoint | None]]:
    """The parts of the account that restrictions guard."""
    for part, words in PARTS.items():
        region = Region(Door(part, 0, "account"), words)
        yield region, enter_part(before, region), enter_part(after, region)


def _openers(before: Account, after: Account) -> Iterator[tuple[Region, EntryPoint | None, EntryPoint | None]]:
    """What the holders of each credential may open."""
    for name in sorted({*before.openers, *after.openers}):
        sides = before.openers.get(name), after.openers.get(name)
        universe = {rule for resource in sides if resource is not None for rule in _rules(resource)}
        region = Region(Door("bind", 0, "credential"), name)
        one, other = (_open(region, resource, universe, before.builder) for resource in sides)
        yield region, one, other


def _rules(resource: Resource) -> list[str]:
    rules = [str(rule) for rule in read_list(resource.fields.get("acl"))]
    return [] if {"*", "bind:*"} & {*rules} else rules


def _open(region: Region, resource: Resource | None, universe: set[str], builder: Builder) -> EntryPoint | None:
    """Who may open what, as tokens: each rule of both states is one."""
    if resource is None:
        return None
    rules = _rules(resource)
    covered = frozenset(known for known in universe if any(_covers(rule, known) for rule in rules))
    labels = frozenset(known for known in covered if "=" in known)
    program = builder.branch(Token("bind", (covered - labels if rules else None,)), PASS)
    addresses = frozenset(
        known for known in universe - covered if rules and any(_covers(rule, _host_of(known)) for rule in rules)
    )
    for what, doubtful in (("labels", labels), ("addresses of their hosts", addresses)):
        if doubtful:
            claim = Claim(f"rules of credentials apply to {what}", is_open=True)
            program = builder.branch(claim, builder.branch(Token("bind", (doubtful,)), PASS, program), program)
    words = (", ".join(rules),) if rules else ("any endpoint, address and label",)
    return EntryPoint(region, words, frozenset({resource.name}), program)


def _host_of(rule: str) -> str:
    """The rule for the host of an address; for other rules the rule itself."""
    host, _, port = rule.rpartition(":")
    return host if port.isdigit() else rule


def _covers(rule: str, other: str) -> bool:
    """Whether a bind rule allows all that another one allows."""
    if rule == other:
        return True
    one, another = rule.removeprefix("bind:"), other.removeprefix("bind:")
    if "=" in one or "=" in another:
        return "=" in one and "=" in another and fnmatchcase(another, one)
    return one.startswith("*.") and another.removeprefix("*").endswith(one[1:])


# --- verdicts ---------------------------------------------------------------------------------------------------------


class _Judged(Struct, frozen=True):
    """A verdict with its example, not yet in words.

    programs  what was compared; where there is no way in, a wildcard may still serve the host
    """

    region: Region
    verdict: Verdict
    before: EntryPoint | None
    after: EntryPoint | None
    found: Found
    programs: tuple[Program, Program]


class _Judge:
    """Decides about entry points; those of equal programs once."""

    def __init__(self, before: Account, after: Account) -> None:
        self._before = before
        self._after = after
        self._gained: dict[tuple[int, int], Found | None] = {}
        self._mentioned: dict[tuple[Door, str], Set[str]] = {}

    def decide(self, region: Region, one: EntryPoint | None, other: EntryPoint | None) -> _Judged | None:
        old, new = _program(one or self._enter_otherwise(self._before, region)), _program(other)
        if other is None:
            new = _program(enter_wildcard(self._after, region, self._list_mentioned(region)))
        if old is new:
            return None
        if (gained := self._find_gained(old, new)) is not None:
            is_new = one is None and not self._before.serves_port(region)
            return _Judged(region, Verdict.EXPOSES if is_new else Verdict.WIDENS, one, other, gained, (old, new))
        lost = self._find_gained(new, old)
        return _Judged(region, _judge_loss(other), one, other, lost, (old, new)) if lost is not None else None

    def _enter_otherwise(self, account: Account, region: Region) -> EntryPoint | None:
        """How the host of a region is served that has no way in: from everywhere, or by the wildcard that begins with
        it."""
        paths = self._list_mentioned(region)
        return enter_publicly(account, region, paths) or enter_wildcard(account, region, paths)

    def _list_mentioned(self, region: Region) -> Set[str]:
        """The paths that both states mention, among which the example of a region is chosen."""
        key = region.door, region.host
        if key not in self._mentioned:
            self._mentioned[key] = fold_case(self._before.list_paths(*key) | self._after.list_paths(*key))
        return self._mentioned[key]

    def _find_gained(self, old: Program, new: Program) -> Found | None:
        key = id(old), id(new)
        if key not in self._gained:
            self._gained[key] = find_gained(old, new)
        return self._gained[key]

    def describe(self, judged: _Judged) -> Difference:
        region, found = judged.region, judged.found
        declared = ChainMap(*(account.doors.get(region.door, {}) for account in (self._before, self._after)))
        programs = _program(judged.before), _program(judged.after)
        witness = describe_request(region, self._list_mentioned(region), declared, found, *programs)
        depends_on = () if found.is_certain else tuple(_list_open(found, *programs))
        sides = judged.before, judged.after
        return Difference(region, judged.verdict, *sides, witness, found.is_certain, depends_on, found.request)


def identify(difference: Difference, builder: Builder) -> str:
    """The digest of the entry point, the verdict, and exactly who gets through before and after.

    Secrets count by digests that are slow to guess, with the entry point as salt.
    """
    salt = str(difference.region)
    sides = [program_text(side.program) if side is not None else "" for side in (difference.before, difference.after)]
    text = "\n".join([salt, str(difference.verdict), *sides])
    text = builder.replace_secrets(text, lambda secret: digest_secret(Secret(secret, ""), salt))
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _judge_loss(after: EntryPoint | None) -> Verdict:
    if after is None:
        return Verdict.CLOSES
    return Verdict.NARROWS if passes_any(after.program) else Verdict.LOCKS_OUT


def _program(entry: EntryPoint | None) -> Program:
    return entry.program if entry is not None else REFUSE


def _list_open(found: Found, *programs: Program) -> Iterator[str]:
    """What is not known, and decides whether the example shows a difference."""
    if found.request is None:
        yield TOO_LARGE
    elif unmap(found.request.source) is not None:
        yield MAPPED_ADDRESS
    claims = (part for part in conditions_of(*programs) if isinstance(part, Claim) and part.is_open)
    yield from sorted({claim.text for claim in claims})


def _merge(judged: list[_Judged]) -> Iterator[_Judged]:
    """Without the paths that say the same as the paths below them."""
    known = {found.region: found for found in judged}
    for found in judged:
        region = found.region
        if region.below or not _says_same(found, known.get(replace(region, below=True))):
            yield found


def _says_same(one: _Judged, other: _Judged | None) -> bool:
    """Whether both have the same programs. Equal words are not enough: an approval holds for one change."""
    if other is None or one.verdict != other.verdict:
        return False
    pairs = ((one.before, other.before), (one.after, other.after))
    return all((mine is None) == (its is None) and _program(mine) is _program(its) for mine, its in pairs) and all(
        mine is its for mine, its in zip(one.programs, other.programs, strict=True)
    )


def describe(entry: EntryPoint | None) -> str:
    """Who gets through, in words."""
    return entry.admits if entry is not None else "no way in"


def program_text(program: Program) -> str:
    """A text that two programs share if and only if they are equal."""
    numbers: dict[int, int] = {id(PASS): 0, id(REFUSE): 1}
    lines: list[str] = []
    stack = [program]
    while stack:
        node = stack[-1]
        if id(node) in numbers:
            stack.pop()
            continue
        assert isinstance(node, Branch)
        missing = [part for part in (node.then, node.otherwise) if id(part) not in numbers]
        if missing:
            stack += missing
            continue
        lines.append(f"{_condition_text(node.condition)} {numbers[id(node.then)]} {numbers[id(node.otherwise)]}")
        numbers[id(node)] = len(numbers)
        stack.pop()
    return "\n".join([*lines, str(numbers[id(program)])])


def _condition_text(condition: object) -> str:
    match condition:
        case Certificate(authorities):
            return f"certificate {sorted(authorities)}"
        case Login(provider, admitted):
            return f"login {provider} {sorted(admitted)}"
        case Method(methods):
            return f"method {sorted(methods)}"
        case Token(scheme, accepted):
            return f"token {scheme} {[sorted(values) if values is not None else None for values in accepted]}"
    return repr(condition)
