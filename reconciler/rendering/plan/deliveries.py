"""Says where a one-time secret will be delivered and which commands will run, with every argument, as clean text.

Commands are quoted as a shell reads them, so that a reader can tell one argument from two; nothing of them is cut here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from reconciler.model.manifest import Delivery
from reconciler.model.value import Json
from reconciler.rendering.terminal_text import sanitize


def describe(deliver: Mapping[str, Delivery]) -> Iterator[str]:
    """Clean lines: for each output where it will go, then what else will run or be passed on."""
    for output, delivery in deliver.items():
        yield sanitize(f"{output} will be delivered to ") + _target(delivery)
        yield from _command_details(delivery)


def quote(arguments: Json) -> str:
    """An argument list as a shell would read it. What no terminal should obey is spelt as `$'\\x1b'`."""
    if not isinstance(arguments, list):  # of a plan file that somebody else wrote
        return sanitize(str(arguments))
    return sanitize(" ".join(_quote_argument(str(argument)) for argument in arguments))


def _target(delivery: Delivery) -> str:
    settings, target = delivery.settings, sanitize(delivery.target)

    def named(name: str) -> str:
        return sanitize(str(settings.get(name, "")))

    match delivery.way:
        case "to_file":
            return f"the file {target}"
        case "to_dotenv":
            return f"the entry {named('name')} of the file {target}"
        case "to_kubernetes_secret":
            name = "/".join(each for each in (named("namespace"), named("name")) if each)
            return f"the file {target}, as key {named('key')} of the Kubernetes Secret {name}"
        case "to_command":
            return f"the standard input of the command: {quote(settings.get('run', [delivery.target]))}"
    return f"{target} by {sanitize(delivery.way)}"


def _command_details(delivery: Delivery) -> Iterator[str]:
    if delivery.way != "to_command":
        return
    if check := delivery.settings.get("check"):
        yield f"before that, this command will run: {quote(check)}"
    if env := delivery.settings.get("env"):
        names = ", ".join(map(str, env)) if isinstance(env, list) else str(env)
        yield f"environment variables that it gets: {sanitize(names)}"


def _quote_argument(argument: str) -> str:
    quoted = shlex.quote(argument)
    if sanitize(quoted) == quoted:
        return quoted
    escaped = argument.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{sanitize(escaped)}'"
