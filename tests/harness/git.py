"""Git for the repositories of the tests."""

from __future__ import annotations

_SETTINGS = (
    "user.name=a",
    "user.email=a@example.com",
    "commit.gpgsign=false",
    "protocol.file.allow=always",
    "maintenance.auto=false",  # after each commit another process would look for something to tidy
)
GIT = ("git", *(word for setting in _SETTINGS for word in ("-c", setting)))
"""The beginning of a command."""
