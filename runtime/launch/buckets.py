"""Buckets of a deployment: set them up in a store that was started with it, and pass them to its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime.launch.errors import LaunchError
from runtime.model.system import System
from runtime.node.settings import read
from runtime.stores.layouts.s3 import KeptInBucket

if TYPE_CHECKING:
    from runtime.stores.s3.client.location import BucketLocation

KEY = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""The variables with the credentials of every S3 client."""


class Buckets:
    """The buckets with the entities of a system, for given settings."""

    def __init__(self, system: System, settings: Mapping[str, str]) -> None:
        self._system = system = system.placed_by(KeptInBucket.engine)
        self._settings = settings
        self._buckets = [
            kept for each in system.lifecycles.values() if (kept := each.stored_as(KeptInBucket)) is not None
        ]
        self.page: str | None = None
        """The URL of the page, if one was deployed."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables for clients that use the buckets without a node in between."""
        if not any("store" in each.proofs for each in self._system.principals.values()):
            return {}
        named = [(each.endpoint, each.bucket, each.region, each.prefix) for each in self._buckets]
        wanted = [name for names in named for name in names if name is not None]
        values = {
            name: self._settings.get(name) or self._system.variables[name].default
            for name in (*dict.fromkeys(wanted), *KEY)
            if name in self._system.variables
        }
        return {name: value for name, value in values.items() if value}

    @property
    def endpoints(self) -> dict[str, str]:
        """The URLs of the store and of the page, for clients of the buckets."""
        there = self.variables
        stores = [there[each.endpoint] for each in self._buckets if each.endpoint in there]
        found = {"s3": ",".join(dict.fromkeys(stores)), "page": self.page}
        return {name: url for name, url in found.items() if url}

    async def set_up(self) -> list[str]:
        """Create and configure the buckets, the page included; return a sentence for each step."""
        from runtime.stores.s3.client.errors import ObjectError
        from runtime.stores.s3.client.location import locations_of

        done: list[str] = []
        try:
            for location in locations_of(self._system.lifecycles.values(), self._values()):
                done += await self._set_up_bucket(location)
        except ObjectError as error:
            raise LaunchError(f"The bucket cannot be made ready: {error}") from None
        return done

    async def _set_up_bucket(self, location: BucketLocation) -> list[str]:
        from runtime.stores.s3.bucket.bucket_settings import allow_anonymous_reads, set_up
        from runtime.stores.s3.bucket.page_files import FOLDER, deploy_page, has_page, page_url
        from runtime.stores.s3.client.credentials import KeySource
        from runtime.stores.s3.client.objects import Objects

        credentials = KeySource(self._settings)
        objects, root = (Objects(each, credentials) for each in (location, replace(location, prefix="")))
        try:
            done = await set_up(objects, self._system.lifecycles.values(), self._values())
            if has_page(self._system.name):
                await deploy_page(self._system.name, location, credentials)
                done.append(await allow_anonymous_reads(root, f"{FOLDER}/"))
                self.page = page_url(location)
        finally:
            await objects.close()
            await root.close()
        return done

    def _values(self) -> dict[str, Any]:
        rows = [row for row in self._system.variables.values() if not row.required]
        return read(rows, (), self._settings)
