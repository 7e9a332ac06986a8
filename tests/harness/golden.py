"""The option `--rewrite`: tests write their files of expected output instead of comparing them.

It is an option and not an environment variable, so that a variable that happens to be set never rewrites a file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_is_rewriting = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write files of expected output instead of comparing them; review the diff",
    )


def pytest_configure(config: pytest.Config) -> None:
    global _is_rewriting
    _is_rewriting = config.getoption("--rewrite")


def is_rewriting() -> bool:
    """True with `--rewrite`."""
    return _is_rewriting


def compare_golden(file: Path, output: str) -> None:
    """Asserts that a file of expected output has this text, or writes it with `--rewrite`."""
    if is_rewriting():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(output, encoding="utf-8")
    assert file.is_file(), f"{file} does not exist; write it with --rewrite"
    assert output == file.read_text(encoding="utf-8")
