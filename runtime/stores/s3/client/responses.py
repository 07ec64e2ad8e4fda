"""Failures of a request to S3: from the errors of both clients to the exceptions of the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from runtime.stores.s3.client.errors import Away, Gone, NotMatched, ObjectError, Refused
from runtime.stores.s3.client.location import BucketLocation, address_of

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

# obstore has few exception classes; status, code and cause are only in the text of the exception.
_STATUS = re.compile(r" - Server returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_REDIRECTED = re.compile(r"\binner: BareRedirect\b")
_UNDESCRIBED = "Generic S3 error: Unable to extract metadata"
_NO_CONNECTION = re.compile(r"\bkind: Connect\b")
_TIMED_OUT = re.compile(r"\bkind: Timeout\b")
_REASON = re.compile(r'(?:message|error): "([^"]+)"')
_UNTRUSTED = re.compile(r"InvalidCertificate\(\s*(\w+)")
_DEBUG = "\n\nDebug source:"

_NOT_YET = {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "Throttling"}
_WRONG_KEY = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "InvalidToken",
    "ExpiredToken",
    "TokenRefreshRequired",
    "AuthorizationHeaderMalformed",
}


class NoBucket(Refused):
    """There is no such bucket."""


class NoStore(Refused):
    """The endpoint is not S3, or not at the path of its buckets."""

    def __init__(self, location: BucketLocation, seen: str) -> None:
        super().__init__(f"What answers is no S3 store ({seen}): check {location.names.endpoint}.")


class NotKnown(Refused):
    """The store does not implement an operation or its condition."""


class Undescribed(Refused):
    """A successful response without the headers that describe the object."""


class NotSent(Away):
    """There was no connection, so the store has not received the request."""


class Response(NamedTuple):
    """A response with a status other than success."""

    status: int
    code: str = ""
    message: str = ""
    region: str | None = None
    """Region of the bucket, by the `x-amz-bucket-region` header."""


def parse_response(status: int, headers: Mapping[str, str], body: bytes) -> Response:
    """Parse the response of a failed request."""
    text = body.decode("utf-8", "replace")
    return Response(status, _first(_CODE, text), _first(_MESSAGE, text), headers.get("x-amz-bucket-region"))


def refusal(response: Response, location: BucketLocation, needed: str) -> ObjectError:
    """Convert a failed response to an exception; `needed` is the permission that the request needs."""
    bucket, names = location.bucket, location.names
    status, code = response.status, response.code
    said = f"{status} {code}".strip()
    if status in {409, 412} or code in {"PreconditionFailed", "ConditionalRequestConflict"}:
        return NotMatched(said)
    if code == "NoSuchBucket":
        return NoBucket(f'There is no bucket "{bucket}" at the store: set {names.bucket}, or make it.')
    if status == 404:
        return Gone(said)
    if status == 501 or code == "NotImplemented":
        return NotKnown(f"The store does not do what was asked of it: {said}.")
    if status >= 500 or status in {408, 429} or code in _NOT_YET:
        return Away(f"The store answers {said}.")
    if code == "RequestTimeTooSkewed":
        return Refused("The clock of this machine and that of the store are too far apart: set it right.")
    if code in _WRONG_KEY:
        return Refused(
            f"The store does not take the key ({code}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY "
            f"and {names.region}."
        )
    if status in {301, 307, 308}:
        there = f" to {response.region}" if response.region else ""
        return Refused(f'The bucket "{bucket}" is elsewhere: set {names.region}{there}.')
    if status in {401, 403}:
        return Refused(
            f'The key may not do this in the bucket "{bucket}" ({said}): let it have {needed}, '
            "or take another one."
        )
    why = " ".join(f"{said} {response.message}".split()).rstrip(".")
    return Refused(f"The store refuses: {why}.")


def explain_obstore(error: Exception, location: BucketLocation, needed: str) -> ObjectError:
    """Convert an exception of obstore.

    An unknown text counts as a lost response: a conditional request is then not repeated, and its caller
    reads the object.
    """
    text = str(error)
    said, _, debug = text.partition(_DEBUG)
    if (status := _STATUS.search(said)) is not None:
        response = Response(int(status[1]), _first(_CODE, said), _first(_MESSAGE, said))
        return refusal(response, location, needed)
    if _REDIRECTED.search(debug) is not None:
        return refusal(Response(301), location, needed)
    if said.startswith(_UNDESCRIBED):
        return Undescribed("The store does not say which version of an object it has, or from when it is.")
    if (untrusted := _UNTRUSTED.search(debug)) is not None:
        return _untrusted(location, untrusted[1])
    if _TIMED_OUT.search(debug) is not None:
        return Away(f"The store does not answer: no answer within {location.timeout_s:.3g} s.")
    reason = _first(_REASON, debug).lower()
    if _NO_CONNECTION.search(debug) is not None:
        return _no_connection(location, reason)
    return Away(f"The store does not answer: the connection ended{': ' if reason else ''}{reason}.")


def explain_client_error(error: ClientError, location: BucketLocation, needed: str) -> ObjectError:
    """Convert a response that botocore takes for an error."""
    parsed = error.response
    known, answer = parsed.get("Error", {}), parsed.get("ResponseMetadata", {})
    status = int(answer.get("HTTPStatusCode", 0))
    code = str(known.get("Code", ""))
    # Without a document botocore puts the status there.
    code = "" if code.isdigit() else code
    region = answer.get("HTTPHeaders", {}).get("x-amz-bucket-region")
    return refusal(Response(status, code, str(known.get("Message", "")), region), location, needed)


def explain_botocore(error: BotoCoreError, location: BucketLocation) -> ObjectError:
    """Convert an exception of botocore that has no response."""
    from botocore import exceptions

    if isinstance(error, exceptions.SSLError):
        reason = str(error.kwargs.get("error", error))
        return _untrusted(location, reason.partition("certificate verify failed: ")[2] or reason)
    if isinstance(error, exceptions.ConnectTimeoutError):
        return _no_connection(location, f"within {location.timeout_s:g} s")
    if isinstance(error, exceptions.EndpointConnectionError):
        reason = str(error.kwargs.get("error", error)).rpartition("] ")[2]
        return _no_connection(location, reason.rstrip("')").lower())
    if isinstance(error, exceptions.ConnectionError):
        return _no_connection(location, " ".join(str(error).split()).rstrip("."))
    if isinstance(error, exceptions.ReadTimeoutError):
        return Away(f"The store does not answer: no answer within {location.timeout_s:.3g} s.")
    if isinstance(error, exceptions.HTTPClientError):
        return Away("The store does not answer: the connection ended.")
    return Refused(f"The store cannot be asked: {' '.join(str(error).split()).rstrip('.')}.")


def _no_connection(location: BucketLocation, reason: str) -> NotSent:
    address = address_of(location)
    return NotSent(f"The store is away: no connection to {address.host}:{address.port}: {reason}.")


def _untrusted(location: BucketLocation, reason: str) -> Refused:
    address = address_of(location)
    return Refused(
        f"The store at {address.host}:{address.port} cannot be trusted: {reason}. "
        "AWS_CA_BUNDLE may name a file with its authority."
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else found[1]
