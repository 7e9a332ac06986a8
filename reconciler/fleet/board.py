"""The tasks of a run, as its coordinator last read them from the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from reconciler.model.fleet import TaskRecord, TaskState

TaskKey = tuple[str, str]
"""A task of a run: member and project."""


class Board:
    """The tasks of a run, counted by state as they change."""

    def __init__(self, tasks: Iterable[TaskRecord]) -> None:
        self.tasks: dict[TaskKey, TaskRecord] = {}
        self.earlier_attempts: dict[TaskKey, int] = {}  # before this coordinator
        self.states: Counter[TaskState] = Counter()
        self.unfinished: Counter[int] = Counter()  # by wave
        self.members: defaultdict[int, set[str]] = defaultdict(set)  # by wave
        self.failed: defaultdict[int, set[str]] = defaultdict(set)  # members by wave
        for task in tasks:
            self.set(task)

    def set(self, task: TaskRecord) -> None:
        key = (task.member, task.project)
        if (before := self.tasks.get(key)) is not None:
            self._count(before, -1)
        self.earlier_attempts.setdefault(key, task.attempts)
        self.tasks[key] = task
        self._count(task, 1)
        self.members[task.wave].add(task.member)
        if task.state is TaskState.FAILED:
            self.failed[task.wave].add(task.member)

    def _count(self, task: TaskRecord, number: int) -> None:
        self.states[task.state] += number
        if not task.state.is_final:
            self.unfinished[task.wave] += number

    def find_unfinished(self, wave: int) -> list[TaskKey]:
        """The tasks of a wave that have not ended."""
        return [key for key, task in self.tasks.items() if task.wave == wave and not task.state.is_final]
