"""Finds secrets in fields that plans, reports and the account show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.manifest import FILE_WAYS, Declaration, Path
from reconciler.model.problem import Problem
from reconciler.model.value import Sealed, secrets_in, walk_texts
from reconciler.project.documents import phrases, secret_sources
from reconciler.project.documents.resolve import Resolver
from reconciler.project.secrets.reserved_places import fold
from reconciler.project.settings.config import Config

_SOURCES: Final = {"env": "the environment variable", "file": "the file", "var": "the variable"}


class _KnownSecrets(Struct, frozen=True):
    """Texts that must not be shown, and the sources that secrets come from: `env:NAME`, `file:path`, `var:name`.

    places   real paths of the store and of the targets of deliveries
    """

    texts: frozenset[str]
    sources: frozenset[str]
    places: frozenset[str]
    place_of: Callable[[str], str]

    def contain(self, source: str, text: str) -> bool:
        """Whether a value comes from a secret source, is a secret, or contains a long one."""
        word, _, name = source.partition(":")
        if source in self.sources or (word == "file" and fold(self.place_of(name)) in self.places):
            return True
        return secret_sources.contains_secret(text, self.texts)


def _collect_secrets(
    config: Config, environ: Mapping[str, str], declarations: Iterable[Declaration], resolver: Resolver
) -> _KnownSecrets:
    """Collects the keys of this program, every declared secret, the store, and the targets of deliveries."""
    texts = {secret.reveal() for secret in [config.api_key] if secret is not None}
    texts |= set(secret_sources.find_secret_values(environ))
    places = {place for place, purpose in config.own.items() if purpose == "store"}
    for declaration in declarations:
        texts |= {secret.reveal() for secret in secrets_in(declaration.spec) if not isinstance(secret, Sealed)}
        places |= {config.place(entry.target) for entry in declaration.deliver.values() if entry.way in FILE_WAYS}
    return _KnownSecrets(
        frozenset(map(str.strip, texts)),
        frozenset(resolver.secret_sources),
        frozenset(map(fold, places)),
        config.place,
    )


def find_exposed_secrets(
    config: Config, environ: Mapping[str, str], declarations: Mapping[Address, Declaration], resolver: Resolver
) -> Iterator[Problem]:
    """Reports secrets in fields that plans, reports and the account show, each field once."""
    reported: set[tuple[Address, Path]] = set()
    if resolver.visible_values:
        is_secret = cache(_collect_secrets(config, environ, declarations.values(), resolver).contain)
        for value in resolver.visible_values:
            field = value.address, value.path
            if field not in reported and value.address in declarations and is_secret(value.source, value.text or ""):
                reported.add(field)
                word, _, name = value.source.partition(":")
                what = f"{_SOURCES[word]} {name} is used as a secret"
                yield _report(declarations[value.address], value.path, what)
    yield from _find_written_keys(environ, declarations, reported)


def _find_written_keys(
    environ: Mapping[str, str], declarations: Mapping[Address, Declaration], reported: Collection[tuple[Address, Path]]
) -> Iterator[Problem]:
    """Reports texts that contain the value of a key in the environment, however they came into the manifest."""
    keys = [key for key in secret_sources.find_secret_values(environ) if len(key) >= secret_sources.MIN_CONTAINED]
    for address, declaration in declarations.items() if keys else ():
        for path, text in walk_texts(declaration.spec, ()):
            if (address, path) not in reported and any(key in text for key in keys):
                yield _report(declaration, path, "this text contains the value of a key or token in the environment")


def _report(declaration: Declaration, path: Path, what: str) -> Problem:
    return Problem(
        f"{what}, but plans and the platform show this field",
        "use it only in secret fields",
        f"{declaration.address}.{phrases.format_path(path)}",
        declaration.at(*path),
        code="secret-shown",
    )
