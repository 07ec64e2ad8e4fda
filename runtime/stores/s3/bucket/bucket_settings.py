"""The settings of a bucket, which is created if it is missing. All of them are idempotent."""

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
"""Prefix of the objects of probes."""
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
"""Days that old versions of transient objects are kept."""
_HIDDEN: Rule = {"NoncurrentVersionExpiration": {"NoncurrentDays": _OLD_DAYS}}
"""In a versioned bucket an expired object only gets a delete marker and takes up as much space as before.
The versions of an entity are its history and stay; those of a large value are not needed by themselves."""


async def is_versioned(objects: Objects) -> bool:
    """Whether the bucket is versioned."""
    body = await objects.describe("get_bucket_versioning", {"versioning": ""})
    document = parse_document(body, "VersioningConfiguration", objects.location)
    return document.findtext(_STATUS, document.findtext("Status")) == "Enabled"


async def set_up(objects: Objects, lifecycles: Iterable[Lifecycle], values: Mapping[str, Any]) -> list[str]:
    """Create and configure the bucket for the entities of some lifecycles; return a sentence on each step."""
    kept = [found for each in lifecycles if (found := each.stored_as(KeptInS3)) is not None]
    done = [await _ensure_bucket(objects)]
    if any(each.unversioned is not None for each in kept):
        done.append(await _enable_versions(objects, [each.unversioned for each in kept], values))
    done.append(await _set_cors(objects))
    done.append(await _set_expiration(objects, _expiration_rules(objects, kept, values)))
    return done


async def allow_anonymous_reads(objects: Objects, folder: str) -> str:
    """Allow anonymous reads of one folder of the bucket; return a sentence on it."""
    text = await _read_setting(objects, "get_bucket_policy", "Policy")
    policy: dict[str, Any] = json.loads(text) if text else {"Version": "2012-10-17", "Statement": []}
    sid = f"{_NAME}{''.join(filter(str.isalnum, folder))}"
    statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{objects.location.bucket}/{folder}*"],
    }
    others = [each for each in policy["Statement"] if each.get("Sid") != sid]
    policy["Statement"] = [*others, statement]
    try:
        await objects.api.call("put_bucket_policy", Policy=json.dumps(policy))
    except Refused as error:
        return f"{folder} stays unreadable without a key: {error}"
    return f"{folder} is readable without a key, and nothing else is."


async def _ensure_bucket(objects: Objects) -> str:
    name = objects.location.bucket
    try:
        await is_versioned(objects)
    except NoBucket:
        region = objects.location.region
        where = {"CreateBucketConfiguration": {"LocationConstraint": region}} if region != "us-east-1" else {}
        await objects.api.call("create_bucket", **where)
        return f"The bucket {name} is created."
    return f"The bucket {name} is there."


async def _enable_versions(objects: Objects, unless: list[str | None], values: Mapping[str, Any]) -> str:
    if await is_versioned(objects):
        return "It keeps versions."
    try:
        await objects.api.call("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})
    except Refused as error:
        if any(values.get(each) for each in unless if each):
            return f"It keeps no versions, so there is no history: {error}"
        raise
    return "It keeps versions from now on."


def _expiration_rules(
    objects: Objects, kept: Iterable[KeptInS3], values: Mapping[str, Any]
) -> dict[str, Rule | None]:
    """Return the expiration rules of the bucket by name; None for a rule that is to be removed."""
    root = objects.location.prefix
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
    """Return the constant prefix of a key pattern."""
    return pattern.partition("{")[0]


async def _set_cors(objects: Objects) -> str:
    known = await _read_setting(objects, "get_bucket_cors", "CORSRules")
    rules = {"CORSRules": _merge_rules(known, {_NAME: _CORS})}
    try:
        await objects.api.call("put_bucket_cors", CORSConfiguration=rules)
    except Refused as error:
        return f"Not done: pages of other origins may use it. {error}"
    return "Pages of other origins may use it."


async def _set_expiration(objects: Objects, ours: Mapping[str, Rule | None]) -> str:
    known = await _read_setting(objects, "get_bucket_lifecycle_configuration", "Rules")
    rules = {"Rules": _merge_rules(known, ours)}
    try:
        await objects.api.call("put_bucket_lifecycle_configuration", LifecycleConfiguration=rules)
    except Refused as error:
        return f"Not done: it removes by itself what is out of use. {error}"
    return "It removes by itself what is out of use."


def _merge_rules(known: Sequence[Rule] | None, ours: Mapping[str, Rule | None]) -> list[Rule]:
    """Merge our rules with those of others, which stay."""
    others = [each for each in known or () if each.get("ID") not in ours]
    return [*others, *(each for each in ours.values() if each is not None)]


async def _read_setting(objects: Objects, operation: str, name: str) -> Any:
    """Read a setting of the bucket; None where it is not set."""
    try:
        return (await objects.api.call(operation)).get(name)
    except Gone:
        return None
