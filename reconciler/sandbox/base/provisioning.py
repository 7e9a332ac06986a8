"""Certificates that the platform obtains and renews: what each read of a domain or agent ingress advances.

The state is that of the response: no status yet, a job that runs or has failed, or a certificate with the time of its
renewal. Nothing happens between reads.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from reconciler.sandbox.base import certificates, vocabulary
from reconciler.sandbox.base.database import Document

_RENEWAL = timedelta(days=30)  # how long before its end a certificate is renewed
_STATUS, _POLICY = "certificate_management_status", "certificate_management_policy"
_FAULTED = "_provisioning_faulted"  # whether an injected fault made the job fail
INTERNAL_ERROR, DNS_ERROR = "INTERNAL_ERROR", "DNS_ERROR"
_TEXTS = {
    INTERNAL_ERROR: "The certificate of {host} could not be obtained: internal error.",
    DNS_ERROR: "The DNS records of {host} are not set.",
}
_Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]

FindMissing = Callable[[Document], tuple[str, str] | None]
"""Checks the DNS records of a domain or agent ingress: the error code and text of what is missing, or None."""


class ProvisioningFault(BaseModel):
    """What happens to the certificates of the hosts that match; without `error_code` they are only late.

    host         a host name, in which `*` stands for anything
    error_code   why no certificate is obtained, as long as the fault exists
    msg          the text of the error
    delay        seconds for which the job runs before it fails or succeeds
    retry_after  seconds from a failure to the next attempt; None: those of `Provisioning`
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    host: Annotated[str, Field(min_length=1)]
    error_code: Literal["DNS_ERROR", "INTERNAL_ERROR"] | None = None
    msg: str | None = None
    delay: _Seconds = 0.0
    retry_after: _Seconds | None = None


def _check_nameserver(text: str) -> str:
    address, _, port = text.rpartition(":")
    try:
        ip_address(address.strip("[]"))  # a name would need another name server
        is_valid = 0 < int(port) < 65536
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError("it must be an IP address and a port, such as 127.0.0.1:5353")
    return text


class Provisioning(BaseModel):
    """How certificates are obtained.

    nameserver   `ADDRESS:PORT` of the name server that must have the DNS records; None: all records are set
    retry_after  seconds from a failure to the next attempt
    faults       the first one whose `host` matches affects a certificate
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    nameserver: Annotated[str, AfterValidator(_check_nameserver)] | None = None
    retry_after: _Seconds = 30.0
    faults: list[ProvisioningFault] = []

    def check_available(self) -> None:
        """Raises ValueError for a name server without dnspython, which asks it."""
        if self.nameserver is not None and find_spec("dns") is None:
            raise ValueError("nameserver requires dnspython; install it with the extra `dns`")


def advance(
    doc: Document, settings: Provisioning, now: datetime, find_missing: FindMissing
) -> tuple[Document, bool] | None:
    """The object as a read finds it, and whether a certificate has just been obtained; None: as it was.

    A new policy first shows no status. The first read starts the job, a later one ends it. A failed job is tried again
    at its `retries_at`, or when the fault that made it fail no longer exists.
    """
    if doc.get(_POLICY) is None:
        return None
    status = doc[_STATUS]
    job = status["provisioning_job"] if status else None
    fault = next((fault for fault in settings.faults if fnmatchcase(doc["domain"], fault.host)), None)
    if job is None:
        if status and now < vocabulary.instant(status["renews_at"]):
            return None
        return {**doc, _STATUS: _run_job(status, _describe_job(now))}, False
    if job["error_code"] is not None and not _is_retried(doc, job, fault, now):
        return None
    if fault is not None and now < vocabulary.instant(job["started_at"]) + timedelta(seconds=fault.delay):
        return None
    failure = _find_failure(doc, fault, find_missing)
    if failure is None:
        status = {"renews_at": certificates.stamp(now + certificates.LIFETIME - _RENEWAL), "provisioning_job": None}
        return {**doc, _STATUS: status, _FAULTED: False}, True
    wait = settings.retry_after if fault is None or fault.retry_after is None else fault.retry_after
    failed = {"retries_at": certificates.stamp(now + timedelta(seconds=wait)), "error_code": failure[0]}
    is_faulted = fault is not None and fault.error_code is not None
    return {**doc, _STATUS: _run_job(status, {**job, **failed, "msg": failure[1]}), _FAULTED: is_faulted}, False


def _is_retried(doc: Document, job: Document, fault: ProvisioningFault | None, now: datetime) -> bool:
    is_healed = doc.get(_FAULTED) and (fault is None or fault.error_code is None)
    return bool(is_healed) or now >= vocabulary.instant(job["retries_at"])


def _find_failure(doc: Document, fault: ProvisioningFault | None, find_missing: FindMissing) -> tuple[str, str] | None:
    if fault is not None and fault.error_code is not None:
        return fault.error_code, fault.msg or _TEXTS[fault.error_code].format(host=doc["domain"])
    return find_missing(doc)


def _run_job(status: Document | None, job: Document) -> Document:
    return {"renews_at": status["renews_at"] if status else None, "provisioning_job": job}


def _describe_job(now: datetime) -> dict[str, Any]:
    return {
        "error_code": None,
        "msg": "The certificate is being obtained.",
        "started_at": certificates.stamp(now),
        "retries_at": None,
    }
