"""Text about deliveries of one-time secrets: the target, and the commands that will run, with all arguments.

Commands are quoted for a shell, so that arguments can be told apart, and are not cut.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from reconciler.model.manifest import Delivery
from reconciler.model.value import Json
from reconciler.rendering.terminal_text import sanitize


def describe(deliver: Mapping[str, Delivery]) -> Iterator[str]:
    """Sanitized lines: for each output its target, then the check command and the environment variables."""
    for output, delivery in deliver.items():
        yield sanitize(f"{output} will be delivered to ") + _target(delivery)
        yield from _command_details(delivery)


def quote(arguments: Json) -> str:
    """An argument list quoted for a shell. Control characters are written as `$'\\x1b'`."""
    if not isinstance(arguments, list):  # in a plan file that another program wrote
        return sanitize(str(arguments))
    return sanitize(" ".join(_quote_argument(str(argument)) for argument in arguments))


def _target(delivery: Delivery) -> str:
    settings, target = delivery.settings, sanitize(delivery.target)

    def setting(name: str) -> str:
        return sanitize(str(settings.get(name, "")))

    match delivery.way:
        case "to_file":
            return f"the file {target}"
        case "to_dotenv":
            return f"the entry {setting('name')} of the file {target}"
        case "to_kubernetes_secret":
            name = "/".join(part for part in (setting("namespace"), setting("name")) if part)
            return f"the file {target}, as key {setting('key')} of the Kubernetes Secret {name}"
        case "to_command":
            return f"the standard input of the command: {quote(settings.get('run', [delivery.target]))}"
        case "to_github_secret" | "to_vault":
            return sanitize(delivery.label)
    return f"{target} by {sanitize(delivery.way)}"


def _command_details(delivery: Delivery) -> Iterator[str]:
    if delivery.way != "to_command":
        return
    if check := delivery.settings.get("check"):
        yield f"check command, which runs before: {quote(check)}"
    if env := delivery.settings.get("env"):
        names = ", ".join(map(str, env)) if isinstance(env, list) else str(env)
        yield f"environment variables of its commands: {sanitize(names)}"


def _quote_argument(argument: str) -> str:
    quoted = shlex.quote(argument)
    if sanitize(quoted) == quoted:
        return quoted
    escaped = argument.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{sanitize(escaped)}'"
