"""What schemathesis checks of the bridge's answers beside its own checks."""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, Response
from schemathesis.specs.openapi.checks import negative_data_rejection

# Nothing that fits the document may be called one of these.
CALLERS_FAULT = {"invalid-arguments", "malformed-request", "not-found", "unsupported-media-type", "not-acceptable"}


@schemathesis.check
def valid_arguments_are_accepted(ctx: CheckContext, response: Response, case: Case) -> None:
    """What fits the document is never the caller's fault."""
    if response.status_code < 400 or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    code = response.json().get("code")
    assert code not in CALLERS_FAULT, f"arguments that fit the document are {code}"


@schemathesis.check
def invalid_arguments_are_refused(ctx: CheckContext, response: Response, case: Case) -> None:
    """What does not fit the document does not run the tool.

    An explicit null for an optional property is the exception: the bridge takes it
    for the property's absence, and so it is accepted where the schema has no null.
    """
    if not has_null(case.body):
        negative_data_rejection(ctx, response, case)


def has_null(value: Any) -> bool:
    """Tells whether there is a null anywhere inside."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return value is None
    return any(map(has_null, value))


@schemathesis.check
def problems_explain_themselves(ctx: CheckContext, response: Response, case: Case) -> None:
    """Every failure is a problem (RFC 9457) that repeats the status and names the request."""
    if response.status_code < 400:
        return
    assert response.headers["content-type"][0].split(";")[0] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["request_id"] in response.headers["request-id"]
    assert problem["detail"]
