"""The port of an engine that runs the tasks of a fleet."""

from __future__ import annotations

import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from msgspec import Struct

from reconciler.model.fleet import Task
from reconciler.operations.errors import OperationError
from reconciler.store.errors import StoreError


def describe_error(error: Exception) -> str:
    """The reason why a task could not run, without secrets: the text of an unexpected error may contain anything."""
    if isinstance(error, OperationError | StoreError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.filename}:{frame.lineno}"


class TaskEnd(Struct, frozen=True):
    """The end of a task in the engine. Its result is in the store.

    error  why the engine lost it, such as a worker that died; empty: its function returned
    """

    task: Task
    error: str = ""


class Pool(Protocol):
    """Runs tasks on workers."""

    def run(self, tasks: AsyncIterator[Task]) -> AsyncGenerator[TaskEnd, None]:
        """Runs tasks and yields each when it ends, in any order.

        Takes only tasks that can start soon, so that the caller can stop submitting. Ends when `tasks` ends and every
        task has ended. Closing it cancels the running tasks.
        """
