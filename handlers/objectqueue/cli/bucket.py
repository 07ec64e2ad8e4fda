"""The bucket before there is a queue in it: setting it up, trying it out, and putting the page there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli.location import NOT_SET_UP, USAGE, Trouble, Where
from runtime.node.settings import SettingsError, read
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.client.place import places_of
from runtime.stores.s3.client.responses import NoBucket

if TYPE_CHECKING:
    from runtime.stores.s3.bucket.probe import Result

Answer = TypeVar("Answer")


class Deployed(NamedTuple):
    """The page in the bucket: its files, where it is, and a sentence on who may read it."""

    keys: list[str]
    url: str
    access: str


class Bucket:
    """The bucket that some variables name."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        node = SYSTEM.deployments["local"].nodes["desk"]
        variables = [SYSTEM.variables[each] for each in node.variables]
        self._values = read(variables, SYSTEM.variable_rules, environ, node.defaults)
        [self.place] = places_of(SYSTEM.lifecycles.values(), self._values)
        self._objects = Objects(self.place)

    async def set_up(self, *, with_page: bool) -> list[str]:
        """Makes the bucket ready; what was done, a sentence each."""
        from runtime.stores.s3.bucket.bucket_settings import set_up

        done = await set_up(self._objects, SYSTEM.lifecycles.values(), self._values)
        if with_page:
            deployed = await self.deploy_page()
            done += [deployed.access, f"The page is at {deployed.url}"]
        return done

    async def examined(self) -> list[Result]:
        """What was found out about the store and the bucket."""
        from runtime.stores.s3.bucket.probe import examine

        return await examine(self._objects, most_skew_s=self._values["QO_MAX_CLOCK_SKEW_MS"] / 1000)

    async def deploy_page(self) -> Deployed:
        """Puts the page into the bucket, where everybody may read it."""
        from runtime.stores.s3.bucket.bucket_settings import let_everyone_read
        from runtime.stores.s3.bucket.page_files import FOLDER, deploy_page, page_url

        keys = await deploy_page(SYSTEM.name, self.place)
        root = Objects(replace(self.place, prefix=""))
        try:
            access = await let_everyone_read(root, f"{FOLDER}/")
        finally:
            await root.close()
        return Deployed(keys, page_url(self.place), access)

    async def lend_page(self, seconds: int) -> str:
        """Puts the page into the bucket, where it opens for a while for whoever has this address."""
        from runtime.stores.s3.bucket.page_links import lend_page

        return await lend_page(SYSTEM.name, self.place, seconds)

    async def close(self) -> None:
        """Gives all connections back."""
        await self._objects.close()


def run(work: Callable[[Bucket], Awaitable[Answer]], where: Where) -> Answer:
    """Does something with the bucket; whatever goes wrong is one line."""

    async def main() -> Answer:
        bucket = Bucket(where.environ)
        try:
            return await work(bucket)
        finally:
            await bucket.close()

    try:
        return asyncio.run(main())
    except SettingsError as error:
        raise Trouble("\n".join(error.problems), USAGE) from None
    except NoBucket as error:
        raise Trouble(f"{error} {NOT_SET_UP}") from None
    except (ObjectError, OSError) as error:
        raise Trouble(str(error)) from None
