"""Finds secrets in fields that plans, reports and the account show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration
from reconciler.model.problem import Problem
from reconciler.model.value import Sealed, secrets_in
from reconciler.project.documents import phrases
from reconciler.project.documents.resolve import Resolver
from reconciler.project.settings.config import Config

_MIN_LENGTH: Final = 8  # characters: shorter values may be equal by chance
_TOKENS: Final = frozenset({"GITHUB_TOKEN", "VAULT_TOKEN"})
_SOURCES: Final = {"env": "the environment variable", "file": "the file", "var": "the variable"}


class _KnownSecrets(Struct, frozen=True):
    """Texts that must not be shown, and the sources that secrets come from: `env:NAME`, `file:path`, `var:name`."""

    texts: frozenset[str]
    sources: frozenset[str]

    def contain(self, source: str, text: str) -> bool:
        """Whether a value comes from a secret source, is a secret, or contains a long one."""
        if source in self.sources:
            return True
        own = text.strip()
        if len(own) < _MIN_LENGTH:
            return False
        return any(own == text or (len(text) >= 2 * _MIN_LENGTH and text in own) for text in self.texts)


def _collect_secrets(
    config: Config, environ: Mapping[str, str], declarations: Iterable[Declaration], resolver: Resolver
) -> _KnownSecrets:
    """Collects the keys of this program, every declared secret, and the targets of deliveries."""
    texts = {secret.reveal() for secret in [config.api_key] if secret is not None}
    texts |= {text for name, text in environ.items() if _is_own_key(name)}
    files_of = set()
    for declaration in declarations:
        texts |= {secret.reveal() for secret in secrets_in(declaration.spec) if not isinstance(secret, Sealed)}
        files_of |= {f"file:{delivery.target}" for delivery in declaration.deliver.values()}
    return _KnownSecrets(frozenset(map(str.strip, texts)), frozenset(files_of | resolver.secret_sources))


def _is_own_key(variable: str) -> bool:
    """Whether an environment variable holds a key of this program, or the token of a secret store."""
    return variable in _TOKENS or (variable.startswith("RECONCILER_") and variable.endswith("_KEY"))


def find_exposed_secrets(
    config: Config, environ: Mapping[str, str], declarations: Mapping[Address, Declaration], resolver: Resolver
) -> Iterator[Problem]:
    """Reports secrets in fields that plans, reports and the account show, each field once."""
    if not resolver.visible_values:
        return
    reported = set()
    is_secret = cache(_collect_secrets(config, environ, declarations.values(), resolver).contain)
    for value in resolver.visible_values:
        field = value.address, value.path
        if field not in reported and value.address in declarations and is_secret(value.source, value.text or ""):
            reported.add(field)
            word, _, name = value.source.partition(":")
            yield Problem(
                f"{_SOURCES[word]} {name} is used as a secret, but plans and the platform show this field",
                "use it only in secret fields",
                f"{value.address}.{phrases.format_path(value.path)}",
                declarations[value.address].at(*value.path),
                code="secret-shown",
            )
