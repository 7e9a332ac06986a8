"""What comes due: expiries, renewals, rotations, and entries that end."""

from __future__ import annotations

from reconciler.health.dates import list_dates
from reconciler.model.approved import ApprovedItem
from reconciler.model.health import DAY, Health, HealthRow, State
from reconciler.model.known_drift import KnownDrift
from tests.harness.statuses import NOW


def due(address: str, days: float, state: State = State.HEALTHY) -> HealthRow:
    return HealthRow(address, "id_1", Health(state, due=NOW + days * DAY))


def test_dates_are_named_by_what_happens_and_sorted_by_time() -> None:
    rows = [
        due("TLSCertificate/shop", 9, State.DEGRADED),
        due("ReservedDomain/shop", 3),
        due("TunnelCredential/berlin", 5),
        due("SSHHostCertificate/host", 1, State.PROGRESSING),
        HealthRow("", "cert_1", Health(State.HEALTHY, due=NOW + 10 * DAY)),
    ]
    approval = ApprovedItem("delete", "ReservedDomain/old", "rd_1", "digest", "2026-06-02")
    known = KnownDrift("IPPolicy/office", "2026-06-03", "expected")
    found = list_dates(rows, [approval], [known], NOW, 30)
    assert [(due.subject, due.event) for due in found] == [
        ("SSHHostCertificate/host", "becomes valid"),
        ("delete: ReservedDomain/old", "approval ends"),
        ("IPPolicy/office", "is no longer known drift"),
        ("ReservedDomain/shop", "gets a renewed certificate"),
        ("TunnelCredential/berlin", "is rotated"),
        ("TLSCertificate/shop", "expires"),
        ("cert_1", "expires"),
    ]


def test_only_the_days_ahead_count() -> None:
    rows = [due("TLSCertificate/past", -1), due("TLSCertificate/far", 31), due("TLSCertificate/last", 30)]
    found = list_dates(rows, [], [KnownDrift("IPPolicy/a", ""), KnownDrift("IPPolicy/b", "9999-12-31")], NOW, 30)
    assert [due.subject for due in found] == ["TLSCertificate/last"]
