"""What a key has to be allowed for a request, in the words of S3's policies."""

from __future__ import annotations

from collections.abc import Container

_OF_OBJECTS = {
    ("GET", "versionId"): "s3:GetObjectVersion",
    ("GET", ""): "s3:GetObject",
    ("PUT", "tagging"): "s3:PutObjectTagging",
    ("PUT", ""): "s3:PutObject",
    ("DELETE", "tagging"): "s3:DeleteObjectTagging",
    ("DELETE", ""): "s3:DeleteObject",
}
_OF_BUCKETS = {
    ("GET", "list-type"): "s3:ListBucket",
    ("GET", "versions"): "s3:ListBucketVersions",
    ("GET", "versioning"): "s3:GetBucketVersioning",
    ("GET", "cors"): "s3:GetBucketCORS",
    ("GET", "lifecycle"): "s3:GetLifecycleConfiguration",
    ("GET", "policy"): "s3:GetBucketPolicy",
    ("PUT", "versioning"): "s3:PutBucketVersioning",
    ("PUT", "cors"): "s3:PutBucketCORS",
    ("PUT", "lifecycle"): "s3:PutLifecycleConfiguration",
    ("PUT", "policy"): "s3:PutBucketPolicy",
    ("PUT", ""): "s3:CreateBucket",
}


def permission(method: str, query: Container[str], *, of_bucket: bool) -> str:
    """The permission for a request about an object, or about the bucket itself."""
    known = _OF_BUCKETS if of_bucket else _OF_OBJECTS
    asked = (name for (verb, word), name in known.items() if verb == method and (not word or word in query))
    return next(asked, "what it lacks")
