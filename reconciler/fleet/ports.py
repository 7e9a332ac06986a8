"""What runs the tasks of a fleet: the port that an engine implements."""

from __future__ import annotations

import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from msgspec import Struct

from reconciler.model.fleet import Task
from reconciler.operations.errors import OperationError
from reconciler.store.errors import StoreError


def describe_error(error: Exception) -> str:
    """Why a task could not run, without secrets: an error that is not made for people may contain anything."""
    if isinstance(error, OperationError | StoreError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.filename}:{frame.lineno}"


class TaskEnd(Struct, frozen=True):
    """A task is no longer with the engine. What became of it is in the store.

    error  why the engine lost it, such as a worker that died; empty: its function returned
    """

    task: Task
    error: str = ""


class Pool(Protocol):
    """Runs tasks on workers."""

    def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        """Runs tasks and yields each when it ends, in any order.

        Takes no more tasks than can start soon, so that the caller can stop giving them. Ends when `tasks` ends and
        every task has ended. Closing it cancels the tasks that run.
        """
