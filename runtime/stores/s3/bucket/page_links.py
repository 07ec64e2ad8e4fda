"""A presigned page: temporary access to the page of a private bucket by its URL.

Every file of the page has a presigned URL of its own. The entities have none: the page asks for a key as it
always does.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from runtime.stores.s3.bucket.page_files import FIRST, FOLDER, deploy_page, page_files, page_query
from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.location import BucketLocation, address_of
from runtime.stores.s3.client.objects import Objects

LONGEST_S = 7 * 24 * 3600
"""Longest validity of a presigned URL."""
_LENT = "lent.html"
_NONE: Mapping[str, str] = {}
_SCRIPTS = "script-src 'self'"
_FIRST_SCRIPT = '<script type="module"'


async def lend_page(
    system: str, location: BucketLocation, seconds: int, credentials: KeySource | None = None
) -> str:
    """Deploy the page, and return a presigned URL of it that is valid for so many seconds."""
    await deploy_page(system, location, credentials)
    objects = Objects(replace(location, prefix=""), credentials)
    try:
        files = page_files(system)
        parts = {name: await presign(objects, f"{FOLDER}/{name}", seconds) for name in files if name != FIRST}
        text = render_presigned(files[FIRST].read_text(encoding="utf-8"), parts)
        written = await objects.put(f"{FOLDER}/{_LENT}", text.encode())
        # The next presigned page has the same name, and its files may expire earlier: name the version.
        which = {"versionId": written.version} if written.version else {}
        return await presign(objects, f"{FOLDER}/{_LENT}", seconds, {**page_query(location), **which})
    finally:
        await objects.close()


async def presign(objects: Objects, key: str, seconds: int, query: Mapping[str, str] = _NONE) -> str:
    """Presign a URL that reads an object for so many seconds without a key."""
    from botocore.auth import S3SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as BotoKey

    address = address_of(objects.location)
    path = quote(objects.location.prefix + key, safe="/-_.~")
    request = AWSRequest("GET", f"{address.origin}{address.root}/{path}", params=dict(query))
    signing_key = BotoKey(*await objects.credentials.key())
    S3SigV4QueryAuth(signing_key, "s3", objects.location.region, expires=seconds).add_auth(request)
    url: str = request.prepare().url
    return url


def render_presigned(text: str, parts: Mapping[str, str]) -> str:
    """Render the first file of a page with presigned URLs of its files, and an import map of its modules."""

    def replace_link(found: re.Match[str]) -> str:
        name, file = found.groups()
        return f'{name}="{html.escape(parts[file])}"' if file in parts else found[0]

    # Modules import each other by name; the import map resolves the names.
    imports = {f"./{name}": url for name, url in parts.items() if name.endswith(".js")}
    table = json.dumps({"imports": imports})
    digest = base64.b64encode(hashlib.sha256(table.encode()).digest()).decode()
    for mark in (_SCRIPTS, _FIRST_SCRIPT):
        if text.count(mark) != 1:
            raise ValueError(f"the page has to have {mark} once")
    text = re.sub(r'\b(src|href)="([^"#]+)"', replace_link, text)
    text = text.replace(_SCRIPTS, f"{_SCRIPTS} 'sha256-{digest}'")
    return text.replace(_FIRST_SCRIPT, f'<script type="importmap">{table}</script>\n{_FIRST_SCRIPT}')
