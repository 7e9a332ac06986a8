"""Optional behavior of the public platform and its agents that differs from the specification, set by
`PUT /_sandbox/variants`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Variants(BaseModel):
    """The variants that are on.

    patch_empties   a PATCH empties the fields that it must always contain (`ALWAYS_SENT`) but does not
    sparse          responses omit text fields that are not set, instead of returning empty texts
    null_ignored    a PATCH ignores fields that are null, instead of setting them to the platform's default
    agent_examples  an agent answers as in its documentation's examples: the start of a tunnel without the name, tunnels
                    without ID, upstream addresses of http and tls without the scheme; endpoints without bindings,
                    description and metadata, with the upstream protocol `https`
    agent_tls_inspected   an agent inspects tls tunnels and endpoints, on which its documentation is silent
    agent_put_keeps       an agent keeps what the PUT of an endpoint omits, on which its documentation is silent
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    patch_empties: bool = False
    sparse: bool = False
    null_ignored: bool = False
    agent_examples: bool = False
    agent_tls_inspected: bool = False
    agent_put_keeps: bool = False
