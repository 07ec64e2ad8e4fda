"""The bucket as such: set it up, check it, and deploy the page into it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli.location import NOT_SET_UP, USAGE, CommandError, Location
from runtime.node.settings import SettingsError, read
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.client.location import locations_of
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.client.responses import NoBucket

if TYPE_CHECKING:
    from runtime.stores.s3.bucket.probe import ProbeResult

Answer = TypeVar("Answer")


class DeployedPage(NamedTuple):
    """A deployed page: its object keys, its URL, and a sentence on who may read it."""

    keys: list[str]
    url: str
    access: str


class Bucket:
    """The bucket that the environment variables name."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        node = SYSTEM.deployments["local"].nodes["desk"]
        variables = [SYSTEM.variables[each] for each in node.variables]
        self._values = read(variables, SYSTEM.variable_rules, environ, node.defaults)
        [self.location] = locations_of(SYSTEM.lifecycles.values(), self._values)
        self._objects = Objects(self.location)

    async def set_up(self, *, with_page: bool) -> list[str]:
        """Set the bucket up; return what was done, a sentence each."""
        from runtime.stores.s3.bucket.bucket_settings import set_up

        done = await set_up(self._objects, SYSTEM.lifecycles.values(), self._values)
        if with_page:
            deployed = await self.deploy_page()
            done += [deployed.access, f"The page is at {deployed.url}"]
        return done

    async def examine_bucket(self) -> list[ProbeResult]:
        """Check the store and the bucket; return a result for each check."""
        from runtime.stores.s3.bucket.probe import examine

        return await examine(self._objects, most_skew_s=self._values["QO_MAX_CLOCK_SKEW_MS"] / 1000)

    async def deploy_page(self) -> DeployedPage:
        """Deploy the page into the bucket, readable for everyone."""
        from runtime.stores.s3.bucket.bucket_settings import allow_anonymous_reads
        from runtime.stores.s3.bucket.page_files import FOLDER, deploy_page, page_url

        keys = await deploy_page(SYSTEM.name, self.location)
        root = Objects(replace(self.location, prefix=""))
        try:
            access = await allow_anonymous_reads(root, f"{FOLDER}/")
        finally:
            await root.close()
        return DeployedPage(keys, page_url(self.location), access)

    async def presign_page(self, seconds: int) -> str:
        """Deploy the page into the bucket; return a presigned URL that opens it for a limited time."""
        from runtime.stores.s3.bucket.page_links import lend_page

        return await lend_page(SYSTEM.name, self.location, seconds)

    async def close(self) -> None:
        """Close all connections."""
        await self._objects.close()


def run(work: Callable[[Bucket], Awaitable[Answer]], location: Location) -> Answer:
    """Run work on the bucket; raise each failure as a CommandError."""

    async def main() -> Answer:
        bucket = Bucket(location.environ)
        try:
            return await work(bucket)
        finally:
            await bucket.close()

    try:
        return asyncio.run(main())
    except SettingsError as error:
        raise CommandError("\n".join(error.problems), USAGE) from None
    except NoBucket as error:
        raise CommandError(f"{error} {NOT_SET_UP}") from None
    except (ObjectError, OSError) as error:
        raise CommandError(str(error)) from None
