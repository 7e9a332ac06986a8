"""Exceptions of operations: what prevents a plan. Once a plan exists, the result has a status instead."""

from __future__ import annotations

from reconciler.model.problem import ReconcilerError, Rejected


class InvalidProject(Rejected):
    """The project file, a manifest, a project policy or a variable is wrong. `problems` says what and where."""


class OperationError(ReconcilerError):
    """The base class of the exceptions of operations.

    lines   one sentence for each problem, with its remedy
    remedy  a remedy for all of them
    """

    def __init__(self, *lines: str, remedy: str = "") -> None:
        super().__init__("\n".join((*lines, remedy) if remedy else lines))
        self.lines = lines
        self.remedy = remedy


class NothingSelected(OperationError):
    """A target, an exclusion or a replacement names a resource that is neither declared nor owned by the stack."""


class WrongAccount(OperationError):
    """A plan file is for another stack or another account."""


class UnusablePlan(OperationError):
    """A plan file that this project cannot apply: signed although no key is set, or created from a snapshot."""


class NotReviewed(OperationError):
    """Nothing of a push may be applied: it merged no request, or what it merged cannot be determined."""


class UnusableSetting(OperationError):
    """An environment variable has a value that cannot be used."""


class UnreadableAccount(OperationError):
    """No list of the account could be read, or the address of the platform is invalid."""


class ApprovalRequired(OperationError):
    """Values that `accept` would write into manifests open an entry point, and that is not approved."""


class UnwritableProposal(OperationError):
    """A file that an import would write exists with other content."""


class UnusableEdit(OperationError):
    """A resource cannot be renamed or forgotten: the new name is used, or the files cannot be changed."""


class IncompleteAgentConfig(OperationError):
    """A part of an agent's configuration is missing: a declaration, the token, or the server's address."""


class UnusableOutput(OperationError):
    """A file cannot be written, because the project or a delivery uses it, or its content would be lost."""


class UnusableBase(OperationError):
    """The base of a plan is no commit of the project's repository, or Git cannot read it."""


class UnusableSource(OperationError):
    """A fleet's repository cannot be used: its address is not safe, or Git cannot fetch the commit."""


class ChangedWaves(OperationError):
    """The waves of a fleet file are not those with which the apply was started that should be continued."""


class UnusableCluster(OperationError):
    """The scheduler of a fleet's workers cannot be reached or used, or was lost."""
