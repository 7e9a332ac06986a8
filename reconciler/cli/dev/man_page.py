"""The man page, `docs/reconciler.1`, from what `--help` says. Written by `generate`, brought by the wheel.

Options that several commands share are told once. What no help says, the environment and the exit codes, stands here
and in `exit_codes`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from reconciler import __version__
from reconciler.cli.terminal import exit_codes
from reconciler.cli.terminal.group import Command, Group

ENVIRONMENT = {
    "RECONCILER_API_KEY": "The key to the platform's API, instead of the project's platform.api_key.",
    "RECONCILER_BASE_URL": "The platform's address, instead of the project's platform.base_url.",
    "RECONCILER_AGENT_URL": "Where an agent serves its own API, for the kind AgentTunnel.",
    "RECONCILER_STORE": "Where runs are remembered: a file, or postgresql://… with the extra postgres.",
    "RECONCILER_PROJECT": "The folder of reconciler.yaml, as --project.",
    "RECONCILER_ENV": "The environment, as --env.",
    "RECONCILER_LOG_FORMAT": "text or json, as --log-format.",
    "RECONCILER_PLAN_KEY": "Signs the files of plan --out; apply FILE then wants the same key.",
    "RECONCILER_SNAPSHOT_KEY": "Signs snapshots: an Ed25519 private key in PEM.",
    "RECONCILER_NOTIFY_KEY": "Signs what drift --notify sends to webhooks.",
    "RECONCILER_SMTP_URL": "The mail server of drift --notify mailto:…",
    "RECONCILER_MAIL_FROM": "The sender of those mails.",
    "RECONCILER_DEBUG": "Set to anything: unexpected errors show where they come from.",
    "HTTPS_PROXY, ALL_PROXY, NO_PROXY": "The proxy that leads out, and where to none is needed.",
    "SSL_CERT_FILE, SSL_CERT_DIR": "The authorities to trust, instead of those that come with the program.",
    "NO_COLOR": "Set to anything: plain text, as --no-color.",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "Where traces and metrics go, with the extra telemetry; other OTEL_… count too.",
    "GITHUB_TOKEN, GITLAB_TOKEN": "The tokens of comment.",
}
FILES = {
    "reconciler.yaml": "The project: its stack, platform, manifests, limits and guards.",
    "manifests/": "What is declared; the project may name other folders.",
    "environments/NAME.yaml": "What differs in an environment.",
    "policies/": "Rules of the project's own, in CEL.",
    "state/": "What is remembered of runs. Losing it never leads to a duplicate or a wrong delete.",
}
_SHARED_BY = 3  # commands that have an option in common from which on it is told once, for all


def render_page(root: Group) -> str:
    """The whole page as roff."""
    commands = list(_leaves(click.Context(root, info_name="reconciler", **root.context_settings)))
    shared = _find_shared(commands)
    return "\n".join(
        [
            '.\\" Written by `make generate`.',
            f'.TH RECONCILER 1 "" "reconciler {__version__}" "User commands"',
            *_section("NAME", f"reconciler \\- {_text(_lower(root.help or '').rstrip('.'))}"),
            *_section("SYNOPSIS", ".B reconciler", ".I COMMAND", "[OPTIONS] [ARGS]..."),
            *_section("DESCRIPTION", _text(_DESCRIPTION)),
            *_section("COMMANDS", *(line for command in commands for line in _command(command, shared))),
            *_section("OPTIONS OF SEVERAL COMMANDS", *(line for pair in shared.items() for line in _item(*pair))),
            *_section("EXIT STATUS", *_items({str(code): _upper(text) for code, text in exit_codes.MEANINGS.items()})),
            *_section("ENVIRONMENT", *_items(ENVIRONMENT)),
            *_section("FILES", *_items(FILES)),
            *_section("EXAMPLES", *_examples(root.examples)),
            "",
        ]
    )


_DESCRIPTION = (
    "A project is a reconciler.yaml and a folder of manifests. plan reads the account by list calls and shows the "
    "exact API calls that would make it equal to what they declare; apply issues them in order, once, whatever "
    "crashes; drift tells what moved since, and who moved it. Whose an object is stands on the object itself. "
    "Any command says more with --help; a kind is explained by explain KIND."
)


def _leaves(context: click.Context) -> Iterator[click.Context]:
    """The commands that do something, in the order of `--help`; a group that runs by itself comes before its own."""
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    if command.invoke_without_command and context.parent is not None:
        yield context
    for name in command.list_commands(context):
        if (found := command.get_command(context, name)) is not None:
            yield from _leaves(click.Context(found, info_name=name, parent=context))


def _options(context: click.Context) -> dict[str, str]:
    """What `--help` says of each option; of itself it need not."""
    records = (param.get_help_record(context) for param in context.command.params if isinstance(param, click.Option))
    return dict(record for record in records if record is not None)


def _find_shared(commands: Sequence[click.Context]) -> dict[str, str]:
    counted = Counter(pair for command in commands for pair in _options(command).items())
    return {flag: text for (flag, text), times in counted.items() if times >= _SHARED_BY}


def _command(context: click.Context, shared: dict[str, str]) -> Iterator[str]:
    usage = " ".join(context.command.collect_usage_pieces(context))
    yield f".SS {_text(f'{context.command_path} {usage}'.strip())}"
    paragraphs = re.split(r"\n\s*\n", context.command.help or "")
    yield "\n.PP\n".join(_text(" ".join(paragraph.split())) for paragraph in paragraphs)
    options = _options(context)
    for flag, text in options.items():
        if shared.get(flag) != text:
            yield from _item(flag, text)
    if common := [flag.split(" ")[0].rstrip(",") for flag, text in options.items() if shared.get(flag) == text]:
        yield ".PP"
        yield _text(f"Also {', '.join(common)}: see below.")
    if isinstance(context.command, (Command, Group)):
        yield from _examples(context.command.examples)


def _examples(examples: str) -> Iterator[str]:
    lines = [line.strip() for line in examples.strip().splitlines()]
    if lines:
        yield from (".PP", ".RS", ".nf", *map(_text, lines), ".fi", ".RE")


def _section(title: str, *lines: str) -> list[str]:
    return [f".SH {title}", *lines]


def _items(pairs: dict[str, str]) -> Iterator[str]:
    for term, text in pairs.items():
        yield from _item(term, text)


def _item(term: str, text: str) -> tuple[str, ...]:
    return (".TP", f".B {_text(term)}", _text(text))


_ROFF = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "…": "..."})


def _text(text: str) -> str:
    """Text that roff shows as it is, and takes for no request."""
    return f"\\&{shown}" if (shown := text.translate(_ROFF)).startswith(".") else shown


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
