"""HTTP-response backend."""

from typing import Annotated

from typing_extensions import Doc

from reconciler.kinds.fields import Description, Headers, Metadata, Text
from reconciler.model.kind import Between, Kind, ServerDefault, Spec


class HTTPResponseBackend(Spec):
    """Answers every request with the same response."""

    status_code: Annotated[int, Between(100, 599), ServerDefault, Doc("The response's status.")] = 200
    headers: Annotated[Headers, Doc("The response's headers.")] = {}
    body: Annotated[Text, Doc("The response's body.")] = ""
    description: Description = ""
    metadata: Metadata = ""


KIND = Kind(
    spec=HTTPResponseBackend,
    path="/backends/http_response",
    list_key="backends",
    id_prefix="bkdhr_",
    serves=True,
    example="""
        status_code: 503
        headers: {content-type: text/plain}
        body: We are back in a moment.
    """,
)
