"""A declarative reconciler for tunnel and ingress platforms. `Workspace` is the Python API; see docs/python-api.md.

Each public name is imported when it is first used, so that importing the package is fast.
"""

from typing import TYPE_CHECKING, Any

# A literal, which the build reads: `--version` does not need installed metadata.
__version__ = "0.1.0"

if TYPE_CHECKING:
    from reconciler.model.address import Address
    from reconciler.operations.access import AccessResult
    from reconciler.operations.errors import InvalidProject, NothingSelected, OperationError, WrongAccount
    from reconciler.operations.open_project import Selection
    from reconciler.operations.reporting import OperationEvent
    from reconciler.operations.results import ApplyResult, DriftResult, PlanResult, Status, ValidationResult
    from reconciler.operations.runtime import Runtime
    from reconciler.operations.workspace import Workspace

__all__ = [
    "AccessResult",
    "Address",
    "ApplyResult",
    "DriftResult",
    "InvalidProject",
    "NothingSelected",
    "OperationError",
    "OperationEvent",
    "PlanResult",
    "Runtime",
    "Selection",
    "Status",
    "ValidationResult",
    "Workspace",
    "WrongAccount",
]

_MODULES = {
    "AccessResult": "operations.access",
    "Address": "model.address",
    "OperationEvent": "operations.reporting",
    "Runtime": "operations.runtime",
    "Selection": "operations.open_project",
    "Workspace": "operations.workspace",
    **dict.fromkeys(("InvalidProject", "NothingSelected", "OperationError", "WrongAccount"), "operations.errors"),
    **dict.fromkeys(("ApplyResult", "DriftResult", "PlanResult", "Status", "ValidationResult"), "operations.results"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
