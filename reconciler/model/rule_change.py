"""Changes of the rules by which a change is judged, as a review sees them: by the base and by the reviewed branch."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.change import Coded
from reconciler.model.problem import Position
from reconciler.model.value import Json


class RuleRisk(Coded):
    """What a branch does to the rules of its base. Each needs approval, whatever the project requires."""

    LOOSENS = "loosens_rule", "loosens a rule"
    PLACE = "changes_where_it_applies", "changes where it applies"


class RuleChange(Struct, frozen=True):
    """A rule that a branch loosens, or a place that it changes, compared with its base.

    rule           the type of rule, as in `--allow loosens_rule:guards.require_approval=1`
    subject        as approvals.yaml names it: the setting, `policy/NAME`, or `Kind/name.lifecycle.protect`
    before, after  what differs, for people; None: not set, or not known
    digest         of the whole rule before and after
    position       in the branch; None if the branch does not have the rule any more
    """

    risk: RuleRisk
    rule: str
    subject: str
    before: Json
    after: Json
    digest: str
    position: Position | None = None
