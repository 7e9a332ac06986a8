"""HTTP-response backend."""

from collections.abc import Iterator
from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.types.fields import Description, Headers, Metadata, Text
from reconciler.kinds.types.route_modules import find_duplicate_headers
from reconciler.model.access import Upstream
from reconciler.model.fields.annotations import Between, ServerDefault
from reconciler.model.fields.spec import Spec
from reconciler.model.kind import Kind
from reconciler.model.problem import Finding


class HTTPResponseBackend(Spec):
    """Returns the same response to every request."""

    status_code: Annotated[int, Between(100, 599), ServerDefault, Doc("The HTTP status code of the response.")] = 200
    headers: Annotated[Headers, Doc("The headers of the response, by name.")] = {}
    body: Annotated[Text, Doc("The body of the response.")] = ""
    description: Description = ""
    metadata: Metadata = ""

    def findings(self) -> Iterator[Finding]:
        yield from find_duplicate_headers(self.headers, "headers")


KIND = Kind(
    spec=HTTPResponseBackend,
    path="/backends/http_response",
    list_key="backends",
    id_prefix="bkdhr_",
    access=Upstream(),
    example="""
        status_code: 503
        headers: {content-type: text/plain}
        body: We are back in a moment.
    """,
)
