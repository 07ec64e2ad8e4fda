"""The bucket itself: made if it is missing, and told what is to happen in it. All of it may be done again."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from runtime.kept_in_s3 import KeptInS3
from runtime.lifecycles import Lifecycle
from runtime.s3.answers import NoBucket, NoStore
from runtime.s3.errors import Gone, Refused
from runtime.s3.objects import Objects

TRIALS = "trials/"
"""Where objects are that only try the store out."""
_SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_NAME = "charter"
_SEEN_BY_PAGES = ("ETag", "x-amz-version-id", "Date", "x-amz-request-id")
_CORS = (
    f"<CORSRule><ID>{_NAME}</ID><AllowedOrigin>*</AllowedOrigin>"
    + "".join(f"<AllowedMethod>{method}</AllowedMethod>" for method in ("GET", "PUT", "HEAD"))
    + "<AllowedHeader>*</AllowedHeader>"
    + "".join(f"<ExposeHeader>{name}</ExposeHeader>" for name in _SEEN_BY_PAGES)
    + "<MaxAgeSeconds>3600</MaxAgeSeconds></CORSRule>"
)
_OLD_DAYS = 1
"""For how many days there are old versions of what nobody looks at twice."""
_HIDDEN = (
    f"<NoncurrentVersionExpiration><NoncurrentDays>{_OLD_DAYS}</NoncurrentDays></NoncurrentVersionExpiration>"
)
"""Where there are versions, what has expired is only hidden, and takes up as much room as before. The
versions of an entity are its history and stay; those of a large value are nothing by themselves."""


async def is_versioned(objects: Objects) -> bool:
    """Whether the bucket keeps what is overwritten."""
    told = await objects.answer({"versioning": ""}, "VersioningConfiguration")
    return told.findtext(f"{{{_SPACE}}}Status", told.findtext("Status")) == "Enabled"


async def set_up(objects: Objects, lifecycles: Iterable[Lifecycle], values: Mapping[str, Any]) -> list[str]:
    """Makes the bucket ready for the entities of some lifecycles; what was done, a sentence each."""
    kept = [each.in_s3 for each in lifecycles if each.in_s3 is not None]
    done = [await _made(objects)]
    if any(each.unversioned is not None for each in kept):
        done.append(await _versions(objects, [each.unversioned for each in kept], values))
    done.append(await _set_rules(objects, "cors", "CORSConfiguration", {_NAME: _CORS}))
    done.append(
        await _set_rules(objects, "lifecycle", "LifecycleConfiguration", _removals(objects, kept, values))
    )
    return done


async def let_everyone_read(objects: Objects, folder: str) -> str:
    """Opens a folder of the bucket to readers without a key, who see nothing else; a sentence of it."""
    told = await _text(objects, "policy")
    policy: dict[str, Any] = json.loads(told) if told else {"Version": "2012-10-17", "Statement": []}
    sid = f"{_NAME}{''.join(filter(str.isalnum, folder))}"
    statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{objects.place.bucket}/{folder}*"],
    }
    others = [each for each in policy["Statement"] if each.get("Sid") != sid]
    policy["Statement"] = [*others, statement]
    try:
        await _configure(objects, "policy", json.dumps(policy).encode())
    except Refused as error:
        return f"Nobody can read {folder} without a key: {error}"
    return f"Everybody can read {folder} without a key, and nothing else."


async def _made(objects: Objects) -> str:
    name = objects.place.bucket
    try:
        await is_versioned(objects)
    except NoBucket:
        region = objects.place.region
        body = (
            ""
            if region == "us-east-1"
            else f'<CreateBucketConfiguration xmlns="{_SPACE}"><LocationConstraint>{escape(region)}'
            "</LocationConstraint></CreateBucketConfiguration>"
        )
        await objects.request("PUT", None, body=body.encode())
        return f"The bucket {name} is made."
    return f"The bucket {name} is there."


async def _versions(objects: Objects, unless: list[str | None], values: Mapping[str, Any]) -> str:
    if await is_versioned(objects):
        return "It keeps versions."
    body = f'<VersioningConfiguration xmlns="{_SPACE}"><Status>Enabled</Status></VersioningConfiguration>'
    try:
        await _configure(objects, "versioning", body.encode())
    except Refused as error:
        if any(values.get(each) for each in unless if each):
            return f"It keeps no versions, so there is no history: {error}"
        raise
    return "It keeps versions from now on."


def _removals(objects: Objects, kept: Iterable[KeptInS3], values: Mapping[str, Any]) -> dict[str, str | None]:
    """What the bucket removes by itself, by the names of the rules; None where one is not wanted any more."""
    root = objects.place.prefix
    found: dict[str, str | None] = {}
    fleeting = [TRIALS]
    for each in kept:
        fleeting += [_folder(index.key) for index in each.indexes.values()]
        if each.repairs is not None and each.repairs.mark is not None:
            fleeting.append(f"{each.repairs.mark.rpartition('/')[0]}/")
        if each.unversioned is None:
            fleeting.append(_folder(each.object))
        if (retires := each.retires) is not None:
            days = values.get(retires.days)
            tag = f"<Tag><Key>{escape(retires.tag)}</Key><Value>{escape(retires.value)}</Value></Tag>"
            expires = f"<Expiration><Days>{days}</Days></Expiration>"
            retired = {each.object: expires}
            if each.large is not None:
                retired[each.large.object] = expires + _HIDDEN
            for pattern, action in retired.items():
                folder = root + _folder(pattern)
                chosen = f"<And><Prefix>{escape(folder)}</Prefix>{tag}</And>"
                named = f"{_NAME}:{folder}:{retires.value}"
                found[named] = _rule(named, chosen, action) if days else None
    for folder in fleeting:
        named = f"{_NAME}:{root}{folder}"
        found[named] = _rule(
            named,
            f"<Prefix>{escape(root + folder)}</Prefix>",
            "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>" + _HIDDEN,
        )
    return found


def _rule(name: str, chosen: str, action: str) -> str:
    return f"<Rule><ID>{escape(name)}</ID><Filter>{chosen}</Filter><Status>Enabled</Status>{action}</Rule>"


def _folder(pattern: str) -> str:
    """What all keys of a pattern begin with."""
    return pattern.partition("{")[0]


async def _set_rules(objects: Objects, word: str, root: str, ours: Mapping[str, str | None]) -> str:
    """Sets some rules among those of others, which stay."""
    told = await _configuration(objects, word)
    others = [each for each in (told if told is not None else ()) if _id_of(each) not in ours]
    ElementTree.register_namespace("", _SPACE)
    # What is read has a namespace of its own, ours gets it from the root.
    kept = [
        ElementTree.tostring(each, encoding="unicode").replace(f' xmlns="{_SPACE}"', "") for each in others
    ]
    wanted = [text for text in ours.values() if text is not None]
    title = {
        "cors": "Pages of other origins may use it",
        "lifecycle": "It removes by itself what is out of use",
    }
    try:
        await _configure(
            objects, word, f'<{root} xmlns="{_SPACE}">{"".join((*kept, *wanted))}</{root}>'.encode()
        )
    except Refused as error:
        return f"Not done: {title[word][0].lower()}{title[word][1:]}. {error}"
    return f"{title[word]}."


def _id_of(rule: ElementTree.Element) -> str:
    return rule.findtext(f"{{{_SPACE}}}ID") or rule.findtext("ID") or ""


async def _configuration(objects: Objects, word: str) -> ElementTree.Element | None:
    told = await _text(objects, word)
    try:
        return ElementTree.fromstring(told) if told else None
    except ElementTree.ParseError:
        raise NoStore(objects.place, f"it has no {word} that can be read") from None


async def _text(objects: Objects, word: str) -> bytes | None:
    try:
        return (await objects.request("GET", None, query={word: ""})).body
    except Gone:
        return None


async def _configure(objects: Objects, word: str, body: bytes) -> None:
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    await objects.request("PUT", None, {"content-md5": digest}, body, query={word: ""})
