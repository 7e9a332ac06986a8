"""The canonical form of field values, in which planning compares declarations with responses.

In canonical form an absent value is the documented default, lists without order are sorted, equivalent spellings are
equal, and sensitive text is a `Secret`. Owner records hold digests of canonical values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from reconciler.model.fields.annotations import (
    InputOnly,
    PathOnly,
    Sensitive,
    ServerDefault,
    SometimesReturned,
    Unordered,
)
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import (
    Json,
    JsonTemplate,
    Ref,
    Sealed,
    Secret,
    Template,
    Value,
    canonical,
    digest,
    find_secrets,
    has_secret,
    is_known,
    reveal,
    substitute,
)

CanonicalFields = dict[str, Value]  # field name → canonical value
_OUTSIDE = ("env:", "file:")  # beginnings of the sources of secrets that are not written in a manifest


def canonical_spec(kind: Kind, spec: Mapping[str, Value]) -> CanonicalFields:
    """The canonical form of a declared spec. Fields with a server default are included only if they are declared."""
    return _canonicalize_declared(kind.fields, spec)


def _canonicalize_declared(fields: Iterable[Field], spec: Mapping[str, Value]) -> CanonicalFields:
    values = ((field, spec.get(field.name)) for field in fields)
    return {
        field.name: form
        for field, value in values
        if (ServerDefault not in field or value is not None)
        and ((form := canonical_value(field, value)) is not None or ServerDefault not in field)
    }


def canonical_value(field: Field, value: Value) -> Value:
    """The canonical form of one declared field; `value` None: not declared."""
    return empty(field) if value is None else canonicalize(field, value)


def canonicalize(field: Field, value: Value) -> Value:
    """The canonical form of a declared value."""
    if value.__class__ is str and value and field.is_verbatim:
        return value
    match value:
        case Ref() | Template() | JsonTemplate():
            return value
        case Sealed():
            return value
        case Secret() if field.conceals is not None:
            return _canonicalize_text(field, value)
        case Secret():
            text = str(field.canonical(value.reveal())) if field.canonical else value.reveal()
            return Secret(text, value.source) if text or field.default not in (None, "") else field.default
        case None:
            return empty(field)
        case "" if field.default in (None, ""):
            return field.default
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            return _canonicalize_declared(field.fields, value)
        case Shape.LIST if isinstance(value, list):
            return _canon_list(field, [canonicalize(field.item, item) if field.item else item for item in value])
        case Shape.MAP if isinstance(value, dict):
            return _canon_map(field, value)
    return _canon_plain(field, value)


def canonicalize_live(field: Field, value: Json) -> Value:
    """The canonical form of a value in a response."""
    if (value.__class__ is str and value and field.is_verbatim) or value.__class__ is Sealed:
        return value
    if SometimesReturned in field and field.choices and value not in field.choices:
        return None  # the word of some agents for their own choice
    if value is None or (value == "" and field.default in (None, "")):
        is_unknown = value is None and (ServerDefault in field or SometimesReturned in field)
        return None if is_unknown else empty(field)
    match field.shape:
        case Shape.OBJECT if isinstance(value, dict):
            return {sub.name: canonicalize_live(sub, read(sub, value)) for sub in field.fields if InputOnly not in sub}
        case Shape.LIST if isinstance(value, list):
            item = field.item
            if item is not None and item.shape is Shape.OBJECT:
                value = [
                    {sub.name: canonicalize_live(sub, read(sub, part)) for sub in item.fields}
                    if isinstance(part, dict)
                    else part
                    for part in value
                ]
            elif item is not None:
                value = [canonicalize(item, part) for part in value]
            return _canon_list(field, value)
        case Shape.MAP if isinstance(value, dict):
            return _canon_map(field, value)
    return _canon_plain(field, value)


def _canonicalize_text(field: Field, whole: Secret) -> Value:
    """The canonical form of a document that is a secret as a whole, because secrets are in its text."""
    form = field.canonical(whole.reveal()) if field.canonical else whole.reveal()
    if isinstance(form, str):
        return Secret(form, whole.source)
    return field.conceals.mark(form, lambda text: Secret(text, whole.source)) if field.conceals else form


def _canon_map(field: Field, value: Mapping[str, Value]) -> Value:
    items = {key: canonicalize(field.item, item) if field.item else item for key, item in value.items()}
    return _conceal(field, field.canonical(items) if field.canonical else items)


def _conceal(field: Field, value: Value) -> Value:
    """The canonical value with the secrets inside as such. A document that cannot be read is one as a whole."""
    if field.conceals is None:
        return value
    if isinstance(value, str):
        return Secret(value, "live") if field.shape is Shape.ANY else value
    return field.conceals.mark(value, _hide_live)


def _hide_live(text: str) -> Secret:
    return Secret(text, "live")


def _canon_plain(field: Field, value: Json) -> Value:
    if value.__class__ is str and (field.canonical or field.conceals is not None):
        return _canon_text(field, value)
    if field.canonical:
        return _finish(field, field.canonical(value))
    return _finish(field, value)


def _finish(field: Field, value: Json) -> Value:
    if field.canonical and value == "" and field.default in (None, ""):
        return field.default
    if field.conceals is not None:
        return _conceal(field, value)
    return Secret(value, "live") if Sensitive in field and isinstance(value, str) else value


@lru_cache(maxsize=256)  # the declared and the live value follow each other, and are mostly equal
def _canon_text(field: Field, text: str) -> Value:
    return _finish(field, field.canonical(text) if field.canonical else text)


def _canon_list(field: Field, items: list[Value]) -> Value:
    return sort_items(field, field.canonical(items) if field.canonical else items)


def sort_items(field: Field, items: list[Value]) -> list[Value]:
    """The items of a list in canonical order, each once if the order does not matter."""
    if Unordered not in field:
        return items
    return [item for _, item in sorted({_sort_key(item): item for item in items}.items())]


def is_sorted(items: Sequence[Value]) -> bool:
    """Whether the items are in canonical order: those of a list whose order does not matter always are."""
    keys = list(map(_sort_key, items))
    return all(one < other for one, other in pairwise(keys))


def _sort_key(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (Ref, Template)):
        return str(value)
    if has_secret(value) or not is_known(value):
        return repr(value)
    return canonical(reveal(value)).decode(errors="surrogatepass")  # a plan file may contain a template of known text


@cache
def empty(field: Field) -> Value:
    """The canonical form of an absent value: the default, or an empty list or map."""
    if field.default is not None:
        return canonicalize(field, field.default)
    match field.shape:
        case Shape.LIST:
            return []
        case Shape.MAP:
            return {}
    return None


@cache
def absences(field: Field) -> tuple[Json, ...]:
    """Response values that mean "not set", other than omission."""
    if InputOnly in field:
        return ()
    candidates: tuple[Json, ...] = ("", [], {}, False, 0, field.default)
    return (
        None,
        *(
            candidate
            for candidate in candidates
            if candidate is not None and canonicalize_live(field, candidate) == empty(field)
        ),
    )


def read(field: Field, body: Mapping[str, Json]) -> Json:
    """The value of a field in a response, at the place that `ReadAs` gives; None if it is absent."""
    if field.read_as is None:
        value = body.get(field.name)
        return field.as_map.from_map(value) if field.as_map and isinstance(value, Mapping) else value
    if field.read_as.unless and body.get(field.read_as.unless) is not None:
        return None
    path = _steps(field.read_as.path)
    if path[0][0] not in body:
        return body.get(field.name)  # some responses return the form of the request
    return _follow(body, path)


def is_shown(field: Field, body: Mapping[str, Json]) -> bool:
    """Whether a response shows the value of a field. A few responses have the place (`ReadAs`) of input-only values."""
    if InputOnly not in field:
        return True
    return field.read_as is not None and (_steps(field.read_as.path)[0][0] in body or field.name in body)


@cache
def _steps(path: str) -> tuple[tuple[str, bool], ...]:
    """The names of a path, each with whether its value is a list."""
    return tuple((part.removesuffix("[]"), part.endswith("[]")) for part in path.split("."))


def _follow(value: Json, path: tuple[tuple[str, bool], ...]) -> Json:
    for index, (name, is_list) in enumerate(path):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
        if is_list:
            # The specification shows a single Ref for some lists.
            items = value if isinstance(value, list) else [] if value is None else [value]
            return [_follow(item, path[index + 1 :]) for item in items]
    return value


def leaves(field: Field, value: Value, path: str = "") -> Iterator[tuple[str, Field, Value]]:
    """Yields the values inside a field that are compared and recorded separately, with dotted path and field."""
    path = path or field.name
    if field.shape is Shape.OBJECT and isinstance(value, dict):
        for sub in field.fields:
            if sub.name in value:
                yield from leaves(sub, value[sub.name], f"{path}.{sub.name}")
    else:
        yield path, field, value


def collect_applied(kind: Kind, form: CanonicalFields) -> dict[str, Value]:
    """The values that an owner record must record, by dotted path: leaves that differ from their default, and objects.

    `form` is the result of `canonical_spec`. An object that is set but has only defaults is recorded as `{}`.
    """
    record: dict[str, Value] = {}
    for field in kind.fields:
        if field.name not in form or PathOnly in field:
            continue
        value = form[field.name]
        inside = collect_applied_in(field, value)
        record.update(inside or ({field.name: {}} if value != canonicalize(field, field.default) else {}))
    return record


def collect_applied_in(field: Field, value: Value) -> dict[str, Value]:
    """The leaves of one field that differ from their default, by dotted path."""
    return {
        path: item
        for path, leaf, item in leaves(field, value)
        if ServerDefault in leaf or item != canonicalize(leaf, leaf.default)
    }


def settle(kind: Kind, applied: Mapping[str, Value], resolve: Callable[[Ref], Value]) -> dict[str, Value]:
    """The values of `collect_applied` after `resolve` has replaced all references."""
    if all(map(is_known, applied.values())):
        return dict(applied)
    settled: dict[str, Value] = {}
    for path, value in applied.items():
        if is_known(value):
            settled[path] = value
            continue
        leaf, value = leaf_at(kind.fields, path), substitute(value, resolve)
        if leaf is not None:
            value = canonicalize(leaf, value)
            if value == (None if ServerDefault in leaf else canonicalize(leaf, leaf.default)):
                continue
        settled[path] = value
    for top in {path.partition(".")[0] for path in applied.keys() - settled.keys()}:
        field = kind.by_name[top]
        is_there = field.shape is Shape.OBJECT and field.default is None
        if is_there and not any(path == top or path.startswith(f"{top}.") for path in settled):
            settled[top] = {}
    return settled


def leaf_at(fields: Iterable[Field], path: str) -> Field | None:
    """The field at a dotted path, or None if there is none."""
    name, _, rest = path.partition(".")
    field = next((field for field in fields if field.name == name), None)
    return field if field is None or not rest else leaf_at(field.fields, rest)


def digest_sources(kind: Kind, spec: Mapping[str, Value]) -> dict[str, str]:
    """A digest for each top-level field that names environment variables or files for its secrets."""
    found = {}
    for field in kind.fields:
        sources = [
            [list(place), secret.source]
            for place, secret in find_secrets(spec.get(field.name))
            if secret.source.startswith(_OUTSIDE)
        ]
        if sources:
            found[field.name] = digest(sources)
    return found


def digests(applied: Mapping[str, Value], salt: str) -> dict[str, str]:
    """The digests of applied values by path, as owner records and bindings store them."""
    return {path: digest(value, salt) for path, value in applied.items()}
