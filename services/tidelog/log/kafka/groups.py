"""Forgetting a consumer group. aiokafka knows the request, and its admin client has no method for it."""

from __future__ import annotations

from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupIdNotFound, NonEmptyGroup, for_code
from aiokafka.protocol.admin import DeleteGroupsRequest

from tidelog.log.checks import in_use
from tidelog.log.kafka.connection import Connection

_NO_ERROR: Final = 0


async def forget_group(connection: Connection, admin: AIOKafkaAdminClient, name: str) -> None:
    """As `Log.forget_group`. The group's coordinator decides, so nobody can join in between."""
    async with connection.asking(f"the group {name!r} was forgotten"):
        coordinator = await admin.find_coordinator(name)
        answer = await admin._send_request(DeleteGroupsRequest([name]), coordinator)  # noqa: SLF001 - as above
        ((_name, code),) = answer.results
        if code not in (_NO_ERROR, GroupIdNotFound.errno, NonEmptyGroup.errno):
            raise for_code(code)(name)
    if code == NonEmptyGroup.errno:
        raise in_use(name)
