"""The commands for consumer groups and what they parked: groups, parked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from eventlog.consumer_group import ConsumerGroup, GroupStatus, PartitionStatus
from eventlog.identity import LogId
from eventlog.messages import Json
from eventlog.parking import Parked
from eventlog.store.beside import readers_beside
from eventlog.store.views import RESERVED
from gateway.command.options import AsJson, ConversationId, Data, Durability, Namespace, Tenant, Url, exit_codes
from gateway.command.output import write, write_json, write_table
from gateway.command.place import FAILED, fail, note, opened, run
from gateway.command.runs import moment
from gateway.command.summary import one_line

T = TypeVar("T")
Name = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Version = Annotated[int, typer.Option("--version", "-v", min=1, help="The event's version in its conversation.")]

groups_app = typer.Typer(
    help="Show consumer groups; pause and resume them.", epilog=exit_codes(), rich_markup_mode=None
)
parked_app = typer.Typer(
    help="Show, replay and drop events that a group has parked.",
    epilog=exit_codes(),
    rich_markup_mode=None,
    no_args_is_help=True,
)


def _with_group(
    url: str | None,
    data: Path | None,
    namespace: str,
    durability: str,
    name: str,
    work: Callable[[ConsumerGroup], Awaitable[T]],
) -> T:
    """What ``work`` makes of a group; one that is not there ends the command."""

    async def with_group() -> T:
        async with opened(url, data, namespace, durability) as log:
            group = log.group(name)
            await group.status()
            return await work(group)

    return run(with_group)


@groups_app.callback(invoke_without_command=True)
def list_groups(
    context: typer.Context,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    as_json: AsJson = False,
) -> None:
    """List the groups: members, lag (appends not passed), waiting conversations, parked events."""
    if context.invoked_subcommand is not None:
        return

    async def read() -> list[GroupStatus]:
        async with opened(url, data, namespace, durability) as log:
            names = await readers_beside(log.store)[1]().groups()
            return [await log.group(name).status() for name in names if not name.startswith(RESERVED)]

    found = run(read)
    if as_json:
        write_json([_group_json(status) for status in found])
        return
    columns = ("group", "tenant", "members", "lag", "waiting", "parked", "state")
    write_table(columns, [_row(status) for status in found])


@groups_app.command(epilog=exit_codes())
def show(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    as_json: AsJson = False,
) -> None:
    """Show one group: its members, and partition by partition the holder, its lease and the lag."""
    status = _with_group(url, data, namespace, durability, name, lambda group: group.status())
    if as_json:
        write_json(_group_json(status))
        return
    for member in status.roll.members:
        since, until = moment(member.since_ms), moment(member.lease_ms)
        write(f"member {member.name}/{member.id} since {since}, lease until {until}")
    columns = ("partition", "mark", "end", "lag", "waiting", "parked", "holder", "lease until")
    write_table(columns, [_partition_row(one) for one in status.partitions])


@groups_app.command(epilog=exit_codes())
def pause(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Hand nothing more over, in any member; what is in hand is finished."""
    _with_group(url, data, namespace, durability, name, lambda group: group.pause())
    write(f"group {one_line(name)} is paused: its members see it at their next heartbeat")


@groups_app.command(epilog=exit_codes())
def resume(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Let a paused group go on."""
    _with_group(url, data, namespace, durability, name, lambda group: group.resume())
    write(f"group {one_line(name)} goes on")


@parked_app.command("list", epilog=exit_codes())
def list_parked(
    name: Name,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    as_json: AsJson = False,
) -> None:
    """List what a group has parked, the oldest first."""
    found = _with_group(url, data, namespace, durability, name, _all_parked)
    if as_json:
        write_json([_parked_json(one) for one in found])
        return
    columns = ("tenant", "conversation", "version", "deliveries", "parked", "conversation waits", "error")
    write_table(columns, [_parked_row(one) for one in found])


@parked_app.command("show", epilog=exit_codes())
def show_parked(
    name: Name,
    version: Version,
    conversation: ConversationId,
    tenant: Tenant = "default",
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
    as_json: AsJson = False,
) -> None:
    """Show one parked event with its error and trace."""
    log = LogId(tenant, conversation)
    found = _with_group(url, data, namespace, durability, name, lambda group: group.parked_event(log, version))
    if found is None:
        fail(_not_parked(log, version, name))
    if as_json:
        write_json(_parked_json(found))
        return
    write(f"version {found.version} of {one_line(found.conversation)} of {one_line(found.tenant)}")
    write(f"delivered {found.deliveries} times, parked {moment(found.at_ms)}")
    write(f"its conversation {'waits' if found.waits else 'goes on'}")
    write(found.error)
    if found.trace:
        write(found.trace)


@parked_app.command(epilog=exit_codes())
def replay(
    name: Name,
    version: Annotated[int | None, typer.Option("--version", "-v", min=1, help="The event's version.")] = None,
    conversation: Annotated[str | None, typer.Option("--conversation", "-c", help="The conversation's id.")] = None,
    tenant: Tenant = "default",
    everything: Annotated[bool, typer.Option("--all", help="All that the group has parked.")] = False,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Have a parked event delivered again, its deliveries counted anew."""
    chosen = _chosen(version, conversation, tenant, everything=everything)
    _ask(url, data, namespace, durability, name, chosen, lambda group: group.replay, "delivered again")


@parked_app.command(epilog=exit_codes())
def drop(
    name: Name,
    version: Annotated[int | None, typer.Option("--version", "-v", min=1, help="The event's version.")] = None,
    conversation: Annotated[str | None, typer.Option("--conversation", "-c", help="The conversation's id.")] = None,
    tenant: Tenant = "default",
    everything: Annotated[bool, typer.Option("--all", help="All that the group has parked.")] = False,
    url: Url = None,
    data: Data = None,
    namespace: Namespace = "eventlog",
    durability: Durability = "everysec",
) -> None:
    """Give a parked event up for good; a conversation that waits for it goes on behind it."""
    chosen = _chosen(version, conversation, tenant, everything=everything)
    _ask(url, data, namespace, durability, name, chosen, lambda group: group.drop, "dropped")


def _chosen(
    version: int | None, conversation: str | None, tenant: str, *, everything: bool
) -> tuple[LogId, int] | None:
    """The one event that is meant; None for all."""
    if everything and version is None and conversation is None:
        return None
    if everything or version is None or conversation is None:
        raise typer.BadParameter("give --conversation and --version, or --all")
    return LogId(tenant, conversation), version


def _ask(
    url: str | None,
    data: Path | None,
    namespace: str,
    durability: str,
    name: str,
    chosen: tuple[LogId, int] | None,
    what: Callable[[ConsumerGroup], Callable[[LogId, int], Awaitable[bool]]],
    done: str,
) -> None:
    async def ask(group: ConsumerGroup) -> int:
        if chosen is not None:
            return int(await what(group)(*chosen))
        return sum([await what(group)(one.log, one.version) for one in await _all_parked(group)])

    count = _with_group(url, data, namespace, durability, name, ask)
    if chosen is not None and not count:
        note(_not_parked(*chosen, name))
        raise typer.Exit(FAILED)
    write(f"{count:,} to be {done}: the partition's holder does it at its next heartbeat")


async def _all_parked(group: ConsumerGroup) -> list[Parked]:
    return sorted([one async for one in group.parked()], key=lambda one: one.at_ms)


def _not_parked(log: LogId, version: int, name: str) -> str:
    return f"group {name!r} has not parked version {version} of {log.conversation!r} of {log.tenant!r}"


def _row(status: GroupStatus) -> tuple[object, ...]:
    state = "paused" if status.roll.paused else "running" if status.roll.members else "idle"
    tenant = status.settings.tenant
    return (status.name, tenant, len(status.roll.members), status.lag, status.waiting, status.parked, state)


def _partition_row(one: PartitionStatus) -> tuple[object, ...]:
    lease = moment(one.place.lease_ms) if one.place.holder else None
    return (one.partition, one.end - one.lag, one.end, one.lag, one.waiting, one.parked, one.place.holder, lease)


def _parked_row(one: Parked) -> tuple[object, ...]:
    waits = "yes" if one.waits else "no"
    error = one_line(one.error, 80)
    return (one.tenant, one.conversation, one.version, one.deliveries, moment(one.at_ms), waits, error)


def _parked_json(one: Parked) -> dict[str, Json]:
    return {
        "tenant": one.tenant,
        "conversation": one.conversation,
        "version": one.version,
        "deliveries": one.deliveries,
        "at": moment(one.at_ms),
        "waits": one.waits,
        "error": one.error,
        "trace": one.trace,
    }


def _group_json(status: GroupStatus) -> dict[str, Json]:
    return {
        "group": status.name,
        "tenant": status.settings.tenant,
        "paused": status.roll.paused,
        "lag": status.lag,
        "waiting": status.waiting,
        "parked": status.parked,
        "members": [
            {
                "id": one.id,
                "name": one.name,
                "since": moment(one.since_ms),
                "lease_until": moment(one.lease_ms),
            }
            for one in status.roll.members
        ],
        "partitions": [
            {
                "partition": one.partition,
                "mark": one.end - one.lag,
                "end": one.end,
                "lag": one.lag,
                "waiting": one.waiting,
                "parked": one.parked,
                "holder": one.place.holder or None,
                "lease_until": moment(one.place.lease_ms) if one.place.holder else None,
            }
            for one in status.partitions
        ],
    }
