"""The settings of a bucket, which is made if it is missing. Each may be set again and again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.errors import Gone, Refused
from runtime.stores.s3.client.listings import parse_document
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.client.responses import NoBucket

Rule = dict[str, Any]
TRIALS = "trials/"
"""Where objects are that only try the store out."""
_STATUS = "{http://s3.amazonaws.com/doc/2006-03-01/}Status"
_NAME = "charter"
_CORS: Rule = {
    "ID": _NAME,
    "AllowedOrigins": ["*"],
    "AllowedMethods": ["GET", "PUT", "HEAD"],
    "AllowedHeaders": ["*"],
    "ExposeHeaders": ["ETag", "x-amz-version-id", "Date", "x-amz-request-id"],
    "MaxAgeSeconds": 3600,
}
_OLD_DAYS = 1
"""For how many days there are old versions of what nobody looks at twice."""
_HIDDEN: Rule = {"NoncurrentVersionExpiration": {"NoncurrentDays": _OLD_DAYS}}
"""Where there are versions, what has expired is only hidden, and takes up as much room as before. The
versions of an entity are its history and stay; those of a large value are nothing by themselves."""


async def is_versioned(objects: Objects) -> bool:
    """Whether the bucket keeps what is overwritten."""
    body = await objects.describe("get_bucket_versioning", {"versioning": ""})
    told = parse_document(body, "VersioningConfiguration", objects.place)
    return told.findtext(_STATUS, told.findtext("Status")) == "Enabled"


async def set_up(objects: Objects, lifecycles: Iterable[Lifecycle], values: Mapping[str, Any]) -> list[str]:
    """Makes the bucket ready for the entities of some lifecycles; what was done, a sentence each."""
    kept = [found for each in lifecycles if (found := each.stored_as(KeptInS3)) is not None]
    done = [await _made(objects)]
    if any(each.unversioned is not None for each in kept):
        done.append(await _versions(objects, [each.unversioned for each in kept], values))
    done.append(await _set_cors(objects))
    done.append(await _set_removals(objects, _removals(objects, kept, values)))
    return done


async def let_everyone_read(objects: Objects, folder: str) -> str:
    """Opens a folder of the bucket to readers without a key, who see nothing else; a sentence of it."""
    told = await _setting(objects, "get_bucket_policy", "Policy")
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
        await objects.api.call("put_bucket_policy", Policy=json.dumps(policy))
    except Refused as error:
        return f"Nobody can read {folder} without a key: {error}"
    return f"Everybody can read {folder} without a key, and nothing else."


async def _made(objects: Objects) -> str:
    name = objects.place.bucket
    try:
        await is_versioned(objects)
    except NoBucket:
        region = objects.place.region
        where = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        await objects.api.call("create_bucket", **where)
        return f"The bucket {name} is made."
    return f"The bucket {name} is there."


async def _versions(objects: Objects, unless: list[str | None], values: Mapping[str, Any]) -> str:
    if await is_versioned(objects):
        return "It keeps versions."
    try:
        await objects.api.call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    except Refused as error:
        if any(values.get(each) for each in unless if each):
            return f"It keeps no versions, so there is no history: {error}"
        raise
    return "It keeps versions from now on."


def _removals(
    objects: Objects, kept: Iterable[KeptInS3], values: Mapping[str, Any]
) -> dict[str, Rule | None]:
    """What the bucket removes by itself, by the names of the rules; None where one is not wanted any more."""
    root = objects.place.prefix
    found: dict[str, Rule | None] = {}
    fleeting = [TRIALS]
    for each in kept:
        fleeting += [_folder(index.key) for index in each.indexes.values()]
        if each.repairs is not None and each.repairs.mark is not None:
            fleeting.append(f"{each.repairs.mark.rpartition('/')[0]}/")
        if each.unversioned is None:
            fleeting.append(_folder(each.object))
        if (retires := each.retires) is not None:
            days = values.get(retires.days)
            tags = [{"Key": retires.tag, "Value": retires.value}]
            expires: Rule = {"Expiration": {"Days": days}}
            retired = {each.object: expires}
            if each.large is not None:
                retired[each.large.object] = expires | _HIDDEN
            for pattern, action in retired.items():
                folder = root + _folder(pattern)
                chosen = {"And": {"Prefix": folder, "Tags": tags}}
                named = f"{_NAME}:{folder}:{retires.value}"
                found[named] = _rule(named, chosen, action) if days else None
    for folder in fleeting:
        named = f"{_NAME}:{root}{folder}"
        action = {"Expiration": {"ExpiredObjectDeleteMarker": True}} | _HIDDEN
        found[named] = _rule(named, {"Prefix": root + folder}, action)
    return found


def _rule(name: str, chosen: Rule, action: Rule) -> Rule:
    return {"ID": name, "Filter": chosen, "Status": "Enabled", **action}


def _folder(pattern: str) -> str:
    """What all keys of a pattern begin with."""
    return pattern.partition("{")[0]


async def _set_cors(objects: Objects) -> str:
    known = await _setting(objects, "get_bucket_cors", "CORSRules")
    rules = {"CORSRules": _merged(known, {_NAME: _CORS})}
    try:
        await objects.api.call("put_bucket_cors", CORSConfiguration=rules)
    except Refused as error:
        return f"Not done: pages of other origins may use it. {error}"
    return "Pages of other origins may use it."


async def _set_removals(objects: Objects, ours: Mapping[str, Rule | None]) -> str:
    known = await _setting(objects, "get_bucket_lifecycle_configuration", "Rules")
    rules = {"Rules": _merged(known, ours)}
    try:
        await objects.api.call("put_bucket_lifecycle_configuration", LifecycleConfiguration=rules)
    except Refused as error:
        return f"Not done: it removes by itself what is out of use. {error}"
    return "It removes by itself what is out of use."


def _merged(known: Sequence[Rule] | None, ours: Mapping[str, Rule | None]) -> list[Rule]:
    """Our rules among those of others, which stay."""
    others = [each for each in known or () if each.get("ID") not in ours]
    return [*others, *(each for each in ours.values() if each is not None)]


async def _setting(objects: Objects, operation: str, name: str) -> Any:
    """A setting of the bucket; None where it has none."""
    try:
        return (await objects.api.call(operation)).get(name)
    except Gone:
        return None
