"""The configuration file of an agent: declared like a resource, rendered to a file and never planned."""

from collections.abc import Iterator
from typing import Annotated, Literal

from typing_extensions import Doc

from reconciler.kinds.rules import syntax
from reconciler.kinds.types.agent_files import (
    AgentOptions2,
    AgentOptions3,
    ConfiguredEndpoint,
    ConfiguredTunnel,
    check_version,
)
from reconciler.kinds.types.fields import Deferred, Id, NonEmpty
from reconciler.model.fields.annotations import RefTo
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Home, Kind
from reconciler.model.problem import Finding


class _Source(Spec):
    """What the file is made from besides the settings of the agent."""

    version: Annotated[
        Annotated[Literal["2", "3"], Deferred] | None,
        Doc('The version of the file. If not set: "3" if `endpoints` or other settings of version 3 are, else "2".'),
    ] = None
    extends: Annotated[
        list[Annotated[Id, RefTo("AgentConfig")]],
        Doc("Other agent configurations to merge into this one. Conflicting values are an error."),
    ] = []
    credential: Annotated[
        Annotated[Id, RefTo("TunnelCredential")] | None,
        Doc("The tunnel credential of the agent. Its delivered token becomes the `authtoken` of the file."),
    ] = None
    ingress: Annotated[
        Annotated[Id, RefTo("AgentIngress")] | None,
        Doc(
            "The agent ingress to connect through. One of its regional domains becomes the `server_addr` of the file, "
            "in version 3 the `connect_url`."
        ),
    ] = None
    region: Annotated[
        NonEmpty | None,
        Doc("The region of the ingress to connect to. Required if the ingress has several regional domains."),
    ] = None


class AgentConfig(AgentOptions2, AgentOptions3, _Source):
    """The configuration file of an agent. `reconciler agent config` writes the file; plans do not include it."""

    tunnels: Annotated[
        dict[str, ConfiguredTunnel],
        Doc("The tunnels that the agent opens when it starts, by name. In version 3 they are deprecated."),
    ] = {}
    endpoints: Annotated[
        list[ConfiguredEndpoint], Doc("Version 3: the endpoints that the agent opens when it starts.")
    ] = []

    def findings(self) -> Iterator[Finding]:
        if self.credential is not None and self.authtoken is not None:
            yield Finding(
                ("authtoken",),
                "cannot be combined with credential",
                "remove authtoken or credential",
                code="conflicting-fields",
            )
        for name in ("server_addr", "connect_url"):
            if self.ingress is not None and getattr(self, name) is not None:
                yield Finding(
                    (name,),
                    "cannot be combined with ingress",
                    f"remove {name} or ingress",
                    code="conflicting-fields",
                )
        if self.region is not None and self.ingress is None:
            yield Finding(
                ("region",),
                "applies only together with ingress",
                "set `ingress: {ref: AgentIngress/NAME}`, or set server_addr or connect_url instead of region",
                code="field-not-applicable",
            )
        for name in self.tunnels:
            if (wrong := syntax.tunnel_name(name)) is not None:
                what, _, remedy = wrong.partition("; ")
                yield Finding(("tunnels", name), what, remedy, code="invalid-name")
        yield from self._check_names()
        yield from check_version(vars(self))

    def _check_names(self) -> Iterator[Finding]:
        taken = set(self.tunnels)
        for index, endpoint in enumerate(self.endpoints):
            if endpoint.name in taken:
                text = f"{endpoint.name!r} is the name of another endpoint or tunnel of this configuration"
                yield Finding(("endpoints", index, "name"), text, "use another name", code="duplicate-item")
            if isinstance(endpoint.name, str):
                taken.add(endpoint.name)


KIND = Kind(
    spec=AgentConfig,
    home=Home.FILE,
    example="""
        version: "3"
        credential: {ref: TunnelCredential/berlin}
        ingress: {ref: AgentIngress/connect}
        region: eu
        endpoints:
          - name: agent-api
            url: https://agent.berlin.example.com
            upstream: {url: "4040"}
            inspect: false
    """,
)
