"""What prevents an operation from beginning. Once there is a plan, its result says what came of it instead."""

from __future__ import annotations

from reconciler.model.problem import Rejected


class InvalidProject(Rejected):
    """The project file, a manifest, a project policy or a variable is wrong. `problems` says what and where."""


class OperationError(Exception):
    """`lines`: a sentence for each thing that is wrong, with its remedy. `remedy`: what helps against all of them."""

    def __init__(self, *lines: str, remedy: str = "") -> None:
        super().__init__("\n".join((*lines, remedy) if remedy else lines))
        self.lines = lines
        self.remedy = remedy


class NothingSelected(OperationError):
    """A target, an exclusion or a replacement names a resource that is neither declared nor owned by the stack."""


class WrongAccount(OperationError):
    """A plan file is for another stack or another account."""


class UnusablePlan(OperationError):
    """A plan file that this project cannot apply: signed with a key that is not at hand, or made from a snapshot."""


class UnusableSetting(OperationError):
    """An environment variable has a value that cannot be used."""


class UnreadableAccount(OperationError):
    """Not one list of the account could be read."""


class UnwritableProposal(OperationError):
    """A file that an import would write exists with other text."""


class IncompleteAgentConfig(OperationError):
    """A part of an agent's configuration is missing: a declaration, the token, or the server's address."""


class UnusableBase(OperationError):
    """The base of a plan is no commit of the project's repository, or Git cannot read it."""
