"""The man page `docs/reconciler.1`, generated from the help of all commands, and included in the wheel.

Options that several commands share are described once. Environment variables and files are described here, exit codes
in `exit_codes`.
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
    "RECONCILER_API_KEY": "API key of the platform. Overrides platform.api_key of the project file.",
    "RECONCILER_BASE_URL": "Base URL of the API. Overrides platform.base_url of the project file.",
    "RECONCILER_AGENT_URL": "URL of an agent's API, for the kinds AgentEndpoint and AgentTunnel.",
    "RECONCILER_STORE": "The store: a file, or postgresql://… with the extra postgres. Overrides the project file.",
    "RECONCILER_CACHE": "Folder of the commits that workers of a fleet fetched, by default ~/.cache/reconciler.",
    "RECONCILER_PROJECT": "Project directory, like --project.",
    "RECONCILER_ENV": "Environment, like --env.",
    "RECONCILER_LOG_FORMAT": "Format of messages, text or json, like --log-format.",
    "RECONCILER_PLAN_KEY": "Key that signs the files of plan --out; apply FILE requires the same key.",
    "RECONCILER_SNAPSHOT_KEY": "Key that signs snapshots: an Ed25519 private key in PEM format.",
    "RECONCILER_NOTIFY_KEY": "Key that signs the webhook requests of drift --notify.",
    "RECONCILER_SMTP_URL": "Mail server for drift --notify mailto:…",
    "RECONCILER_MAIL_FROM": "Sender of the mails of drift --notify.",
    "RECONCILER_DEBUG": "If set, unexpected errors are printed with a traceback.",
    "HTTPS_PROXY, ALL_PROXY, NO_PROXY": "Proxy for requests, and hosts to reach without it.",
    "SSL_CERT_FILE, SSL_CERT_DIR": "Trusted certificate authorities, instead of the included ones.",
    "NO_COLOR": "If set, disables color output, like --no-color.",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "Endpoint for traces and metrics, with the extra telemetry; see also other OTEL_…",
    "GITHUB_TOKEN, GITLAB_TOKEN": "Token of the command comment; of GitHub, also of deliveries with to_github_secret.",
    "GITHUB_API_URL": "GitHub's API for deliveries with to_github_secret, if it is an own server.",
    "VAULT_ADDR, VAULT_TOKEN, VAULT_TOKEN_FILE, VAULT_NAMESPACE": "Vault for deliveries with to_vault, and its token.",
}
FILES = {
    "reconciler.yaml": "Project file: stack, platform, manifests, limits and guards.",
    "fleet.yaml": "Fleet file: members, their projects, keys, waves and guards.",
    "manifests/": "Manifests; the project file may name other folders.",
    "environments/NAME.yaml": "Settings and patches of an environment.",
    "policies/": "Policies of the project, in CEL.",
    "state/": "The store: intents, history and locks. Losing it never causes a duplicate or a wrong delete.",
}
_SHARED_BY = 3  # commands; an option of at least this many is described once


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
    "A project is a reconciler.yaml and a folder of manifests. plan reads the account with list calls and shows the "
    "changes, with each API call, that make the account match the manifests. apply sends these calls, in order and "
    "exactly once even after a crash. drift shows what changed on the platform since the last apply, and what changed "
    "it. Ownership is recorded on the object itself. COMMAND --help describes a command, explain KIND a kind."
)


def _leaves(context: click.Context) -> Iterator[click.Context]:
    """All commands in the order of `--help`, with a group that is a command itself before its subcommands."""
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    if command.invoke_without_command and context.parent is not None:
        yield context
    for name in command.list_commands(context):
        if (subcommand := command.get_command(context, name)) is not None:
            yield from _leaves(click.Context(subcommand, info_name=name, parent=context))


def _options(context: click.Context) -> dict[str, str]:
    """The help text of each option of a command, by its flags; without --help."""
    records = (param.get_help_record(context) for param in context.command.params if isinstance(param, click.Option))
    return dict(record for record in records if record is not None)


def _find_shared(commands: Sequence[click.Context]) -> dict[str, str]:
    counts = Counter(pair for command in commands for pair in _options(command).items())
    return {flag: text for (flag, text), times in counts.items() if times >= _SHARED_BY}


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
    lines = (line.strip() for line in examples.strip().splitlines())
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
    """Text escaped for roff."""
    escaped = text.translate(_ROFF)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
