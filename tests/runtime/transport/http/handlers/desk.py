# mypy: ignore-errors
"""The desk of the locker, with a window for forms."""

from __future__ import annotations

import asyncio

from generated.counter import errors
from generated.counter.messages import AskFormResponse, Form, Nothing
from generated.counter.services import VaultService
from generated.counter.settings import DeskSettings
from handlers.counter import plain_desk


class Desk(plain_desk.Desk):
    """Returns its request."""

    def __init__(self, vault: VaultService, settings: DeskSettings) -> None:
        super().__init__(vault, settings)

    async def fill_form(self, request, _call):
        form = Form.FromString(request.SerializeToString())
        if form.form_name == "far":
            form.due_at.seconds = 10**15
        return form

    async def ask_form(self, request, _call):
        return AskFormResponse.FromString(request.SerializeToString())

    async def wait_form(self, _request, _call):
        await asyncio.sleep(30)
        return Nothing()

    async def break_form(self, _request, _call):
        raise RuntimeError("SELECT secret FROM /etc/passwd")

    async def close_form(self, _request, _call):
        raise errors.LunchBreak()

    async def drop_form(self, _request, _call):
        return Nothing()

    async def stamp_form(self, _request, _call):
        return Nothing()
