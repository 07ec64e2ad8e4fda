"""IAM permissions that a key needs, by the operation of S3."""

from __future__ import annotations

_OTHERS = {
    "list_objects_v2": "s3:ListBucket",
    "list_object_versions": "s3:ListBucketVersions",
    "get_bucket_cors": "s3:GetBucketCORS",
    "put_bucket_cors": "s3:PutBucketCORS",
    "get_bucket_lifecycle_configuration": "s3:GetLifecycleConfiguration",
    "put_bucket_lifecycle_configuration": "s3:PutLifecycleConfiguration",
}


def permission(operation: str) -> str:
    """Return the permission for an operation, which in most cases has the name of the operation."""
    return _OTHERS.get(operation) or f"s3:{''.join(map(str.capitalize, operation.split('_')))}"
