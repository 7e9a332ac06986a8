"""Tests projects and programs without the platform: an emulator in memory, or as a process with a socket."""

from reconciler.sandbox.server.faults import Fault
from reconciler.testing.emulator import Emulator
from reconciler.testing.process import AgentProcess, SandboxProcess
from reconciler.testing.sandbox import Sandbox
from reconciler.testing.sinks import MemorySinks

__all__ = ["AgentProcess", "Emulator", "Fault", "MemorySinks", "Sandbox", "SandboxProcess"]
