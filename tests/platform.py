"""A sandbox as a process of its own, and a plain HTTP client beside the one under test."""

from __future__ import annotations

from reconciler.testing import SandboxProcess as Sandbox

__all__ = ["HEADERS", "KEY", "Sandbox"]

KEY = "sandbox"
HEADERS = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}
