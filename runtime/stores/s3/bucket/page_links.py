"""A page in a bucket that nobody may read without a key: for whoever has its address, and for some time.

Everything that the page is made of has an address that was signed with the key of whoever lends it. Such an
address opens one file. The entities are not lent: the page asks for a key as it always does.
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

from runtime.stores.s3.bucket.page_files import FIRST, FOLDER, asked_of, deploy_page, page_files
from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.client.place import BucketPlace, address_of

LONGEST_S = 7 * 24 * 3600
"""No store honours a signature for longer."""
_LENT = "lent.html"
_NONE: Mapping[str, str] = {}
_SCRIPTS = "script-src 'self'"
_FIRST_SCRIPT = '<script type="module"'


async def lend_page(
    system: str, place: BucketPlace, seconds: int, credentials: KeySource | None = None
) -> str:
    """Puts the page there and gives back an address that opens it for so many seconds."""
    await deploy_page(system, place, credentials)
    objects = Objects(replace(place, prefix=""), credentials)
    try:
        files = page_files(system)
        parts = {name: await presign(objects, f"{FOLDER}/{name}", seconds) for name in files if name != FIRST}
        text = lent(files[FIRST].read_text(encoding="utf-8"), parts)
        written = await objects.put(f"{FOLDER}/{_LENT}", text.encode())
        # The next one that is lent has the same name, and its parts may be open for a shorter time.
        which = {"versionId": written.version} if written.version else {}
        return await presign(objects, f"{FOLDER}/{_LENT}", seconds, {**asked_of(place), **which})
    finally:
        await objects.close()


async def presign(objects: Objects, key: str, seconds: int, query: Mapping[str, str] = _NONE) -> str:
    """A link that lets its holder read an object for so many seconds, in place of our key."""
    from botocore.auth import S3SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as BotoKey

    address = address_of(objects.place)
    path = quote(objects.place.prefix + key, safe="/-_.~")
    request = AWSRequest("GET", f"{address.origin}{address.root}/{path}", params=dict(query))
    signing_key = BotoKey(*await objects.credentials.key())
    S3SigV4QueryAuth(signing_key, "s3", objects.place.region, expires=seconds).add_auth(request)
    url: str = request.prepare().url
    return url


def lent(text: str, parts: Mapping[str, str]) -> str:
    """The first file of a page with other addresses for its parts, and for the parts of those."""

    def replace_link(found: re.Match[str]) -> str:
        name, file = found.groups()
        return f'{name}="{html.escape(parts[file])}"' if file in parts else found[0]

    # Modules name each other; a browser looks up there what that means.
    imports = {f"./{name}": url for name, url in parts.items() if name.endswith(".js")}
    table = json.dumps({"imports": imports})
    digest = base64.b64encode(hashlib.sha256(table.encode()).digest()).decode()
    for mark in (_SCRIPTS, _FIRST_SCRIPT):
        if text.count(mark) != 1:
            raise ValueError(f"the page has to have {mark} once")
    text = re.sub(r'\b(src|href)="([^"#]+)"', replace_link, text)
    text = text.replace(_SCRIPTS, f"{_SCRIPTS} 'sha256-{digest}'")
    return text.replace(_FIRST_SCRIPT, f'<script type="importmap">{table}</script>\n{_FIRST_SCRIPT}')
