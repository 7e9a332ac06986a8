"""A declarative reconciler for tunnel and ingress platforms. `Workspace` is the Python API; see docs/python-api.md.

Each public name is imported when it is first used, so that importing the package is fast.
"""

from typing import TYPE_CHECKING, Any

# A literal, which the build reads: `--version` does not need installed metadata.
__version__ = "0.1.0"

if TYPE_CHECKING:
    from reconciler.api.errors import Unreachable
    from reconciler.engine.ports import Conflict, Failure, Gone, Lost, Refused, Transient, Undeliverable
    from reconciler.model.address import Address
    from reconciler.model.problem import ReconcilerError, Rejected
    from reconciler.operations.access import AccessResult
    from reconciler.operations.errors import (
        ApprovalRequired,
        ChangedWaves,
        IncompleteAgentConfig,
        InvalidProject,
        NothingSelected,
        NotReviewed,
        OperationError,
        UnreadableAccount,
        UnusableBase,
        UnusableCluster,
        UnusableEdit,
        UnusableOutput,
        UnusablePlan,
        UnusableSetting,
        UnusableSource,
        UnwritableProposal,
        WrongAccount,
    )
    from reconciler.operations.open_project import Selection
    from reconciler.operations.reporting import OperationEvent
    from reconciler.operations.results import ApplyResult, DriftResult, PlanResult, Status, ValidationResult
    from reconciler.operations.runtime import Runtime
    from reconciler.operations.status import StatusResult
    from reconciler.operations.workspace import Workspace
    from reconciler.project.files import Unreadable
    from reconciler.store.errors import (
        AlreadyExists,
        AmbiguousRun,
        Damaged,
        Foreign,
        Locked,
        LockLost,
        StoreError,
        Unavailable,
        UnknownRun,
        UnknownTask,
        Unreleased,
    )

__all__ = [
    "AccessResult",
    "Address",
    "AlreadyExists",
    "AmbiguousRun",
    "ApplyResult",
    "ApprovalRequired",
    "ChangedWaves",
    "Conflict",
    "Damaged",
    "DriftResult",
    "Failure",
    "Foreign",
    "Gone",
    "IncompleteAgentConfig",
    "InvalidProject",
    "LockLost",
    "Locked",
    "Lost",
    "NotReviewed",
    "NothingSelected",
    "OperationError",
    "OperationEvent",
    "PlanResult",
    "ReconcilerError",
    "Refused",
    "Rejected",
    "Runtime",
    "Selection",
    "Status",
    "StatusResult",
    "StoreError",
    "Transient",
    "Unavailable",
    "Undeliverable",
    "UnknownRun",
    "UnknownTask",
    "Unreachable",
    "Unreadable",
    "UnreadableAccount",
    "Unreleased",
    "UnusableBase",
    "UnusableCluster",
    "UnusableEdit",
    "UnusableOutput",
    "UnusablePlan",
    "UnusableSetting",
    "UnusableSource",
    "UnwritableProposal",
    "ValidationResult",
    "Workspace",
    "WrongAccount",
]

_MODULES = {  # the public names of each module
    "api.errors": ("Unreachable",),
    "engine.ports": (
        "Conflict",
        "Failure",
        "Gone",
        "Lost",
        "Refused",
        "Transient",
        "Undeliverable",
    ),
    "model.address": ("Address",),
    "model.problem": (
        "ReconcilerError",
        "Rejected",
    ),
    "operations.access": ("AccessResult",),
    "operations.errors": (
        "ApprovalRequired",
        "ChangedWaves",
        "IncompleteAgentConfig",
        "InvalidProject",
        "NotReviewed",
        "NothingSelected",
        "OperationError",
        "UnreadableAccount",
        "UnusableBase",
        "UnusableCluster",
        "UnusableEdit",
        "UnusableOutput",
        "UnusablePlan",
        "UnusableSetting",
        "UnusableSource",
        "UnwritableProposal",
        "WrongAccount",
    ),
    "operations.open_project": ("Selection",),
    "operations.reporting": ("OperationEvent",),
    "operations.results": (
        "ApplyResult",
        "DriftResult",
        "PlanResult",
        "Status",
        "ValidationResult",
    ),
    "operations.runtime": ("Runtime",),
    "operations.status": ("StatusResult",),
    "operations.workspace": ("Workspace",),
    "project.files": ("Unreadable",),
    "store.errors": (
        "AlreadyExists",
        "AmbiguousRun",
        "Damaged",
        "Foreign",
        "LockLost",
        "Locked",
        "StoreError",
        "Unavailable",
        "UnknownRun",
        "UnknownTask",
        "Unreleased",
    ),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
