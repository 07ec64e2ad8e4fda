"""Failures of a request to S3: what the two clients report, and what that means for the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from runtime.stores.s3.client.errors import Away, Gone, NotMatched, ObjectError, Refused
from runtime.stores.s3.client.place import BucketPlace, address_of

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

# obstore reports a failure as one of a few exceptions, and all the rest in its text.
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
    """Whatever answers, it is not S3, or not where its buckets are."""

    def __init__(self, place: BucketPlace, seen: str) -> None:
        super().__init__(f"What answers is no S3 store ({seen}): check {place.names.endpoint}.")


class NotKnown(Refused):
    """The store has no such operation, or not with such a condition."""


class Undescribed(Refused):
    """The store answers with success, and not with what it gives or has written."""


class NotSent(Away):
    """There was no connection, so the store has seen nothing of the request."""


class Response(NamedTuple):
    """An answer with a status other than success."""

    status: int
    code: str = ""
    message: str = ""
    region: str | None = None
    """Where the store says that the bucket is."""


def parse_response(status: int, headers: Mapping[str, str], body: bytes) -> Response:
    """An answer that was read as it came."""
    text = body.decode("utf-8", "replace")
    return Response(status, _first(_CODE, text), _first(_MESSAGE, text), headers.get("x-amz-bucket-region"))


def refusal(response: Response, place: BucketPlace, needed: str) -> ObjectError:
    """What an answer other than the wanted one means, to a request that a key needs a permission for."""
    bucket, names = place.bucket, place.names
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
    return Refused(f"The store ceiling: {why}.")


def explain_obstore(error: Exception, place: BucketPlace, needed: str) -> ObjectError:
    """What an exception of obstore means.

    A text that is not understood means that the answer was lost: then nothing that has a condition is
    repeated, and its caller looks what is there.
    """
    text = str(error)
    said, _, debug = text.partition(_DEBUG)
    if (status := _STATUS.search(said)) is not None:
        response = Response(int(status[1]), _first(_CODE, said), _first(_MESSAGE, said))
        return refusal(response, place, needed)
    if _REDIRECTED.search(debug) is not None:
        return refusal(Response(301), place, needed)
    if said.startswith(_UNDESCRIBED):
        return Undescribed("The store does not say which version of an object it has, or from when it is.")
    if (untrusted := _UNTRUSTED.search(debug)) is not None:
        return _untrusted(place, untrusted[1])
    if _TIMED_OUT.search(debug) is not None:
        return Away(f"The store does not answer: no answer within {place.timeout_s:.3g} s.")
    reason = _first(_REASON, debug).lower()
    if _NO_CONNECTION.search(debug) is not None:
        return _no_connection(place, reason)
    return Away(f"The store does not answer: the connection ended{': ' if reason else ''}{reason}.")


def explain_client_error(error: ClientError, place: BucketPlace, needed: str) -> ObjectError:
    """What an answer means that botocore takes for an error."""
    told = error.response
    known, answer = told.get("Error", {}), told.get("ResponseMetadata", {})
    status = int(answer.get("HTTPStatusCode", 0))
    code = str(known.get("Code", ""))
    # Where an answer has no document botocore puts the status there.
    code = "" if code.isdigit() else code
    region = answer.get("HTTPHeaders", {}).get("x-amz-bucket-region")
    return refusal(Response(status, code, str(known.get("Message", "")), region), place, needed)


def explain_botocore(error: BotoCoreError, place: BucketPlace) -> ObjectError:
    """What it means that botocore has no answer."""
    from botocore import exceptions

    if isinstance(error, exceptions.SSLError):
        reason = str(error.kwargs.get("error", error))
        return _untrusted(place, reason.partition("certificate verify failed: ")[2] or reason)
    if isinstance(error, exceptions.ConnectTimeoutError):
        return _no_connection(place, f"within {place.timeout_s:g} s")
    if isinstance(error, exceptions.EndpointConnectionError):
        reason = str(error.kwargs.get("error", error)).rpartition("] ")[2]
        return _no_connection(place, reason.rstrip("')").lower())
    if isinstance(error, exceptions.ConnectionError):
        return _no_connection(place, " ".join(str(error).split()).rstrip("."))
    if isinstance(error, exceptions.ReadTimeoutError):
        return Away(f"The store does not answer: no answer within {place.timeout_s:.3g} s.")
    if isinstance(error, exceptions.HTTPClientError):
        return Away("The store does not answer: the connection ended.")
    return Refused(f"The store cannot be asked: {' '.join(str(error).split()).rstrip('.')}.")


def _no_connection(place: BucketPlace, reason: str) -> NotSent:
    address = address_of(place)
    return NotSent(f"The store is away: no connection to {address.host}:{address.port}: {reason}.")


def _untrusted(place: BucketPlace, reason: str) -> Refused:
    address = address_of(place)
    return Refused(
        f"The store at {address.host}:{address.port} cannot be trusted: {reason}. "
        "AWS_CA_BUNDLE may name a file with its authority."
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else found[1]
