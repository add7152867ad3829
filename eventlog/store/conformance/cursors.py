"""The cursor a writer sends: its event must be where the writer saw it, or was last trimmed."""

from __future__ import annotations

from eventlog.errors import ConversationDeleted, LogLost, Truncated
from eventlog.store.conformance.suite import LOG, Suite, put, refused, request
from eventlog.store.port import NONE, Appended, LogStore


class Cursors(Suite):
    async def _five(self, store: LogStore) -> list[Appended]:
        return [await put(store, number, f"op-{number}") for number in range(1, 6)]

    async def test_any_event_that_is_there_will_do(self, store: LogStore) -> None:
        for version, outcome in enumerate(await self._five(store), 6):
            assert (await put(store, version, f"op-{version}", cursor=outcome.cursor)).first == version

    async def test_an_event_with_another_stamp_was_lost(self, store: LogStore) -> None:
        appended = await self._five(store)
        before = await self.known(store, LOG)
        for version in (1, 3, 5):
            stamp = appended[version - 1].cursor.stamp
            for other in (1, stamp - 1, stamp + 1):
                cursor = LOG.cursor(version, other)
                error = await refused(LogLost, store, request(6, "op-6", cursor=cursor))
                assert error.available == appended[-1].cursor
                assert f"version {version} " in str(error)
        assert await self.known(store, LOG) == before

    async def test_an_event_beyond_the_last_was_lost(self, store: LogStore) -> None:
        error = await refused(LogLost, store, request(1, "op-0", cursor=LOG.cursor(1, 1)))
        assert error.available == LOG.cursor(0, 0)
        last = (await self._five(store))[-1].cursor
        error = await refused(LogLost, store, request(6, "op-6", cursor=LOG.cursor(6, last.stamp)))
        assert error.available == last

    async def test_a_version_that_was_lost_and_used_again_is_noticed(self, store: LogStore) -> None:
        appended = await self._five(store)
        await self.lose(store, LOG, 3)
        assert (await store.head(LOG)).last == appended[2].cursor
        for number in (4, 5):
            await put(store, number, f"other-{number}", cursor=appended[2].cursor)
        for version in (4, 5):
            await refused(LogLost, store, request(6, "op-6", cursor=appended[version - 1].cursor))
        assert (await put(store, 6, "op-6", cursor=appended[2].cursor)).first == 6

    async def test_below_the_base_it_was_trimmed(self, store: LogStore) -> None:
        appended = await self._five(store)
        await self.trim(store, LOG, 3)
        before = await self.known(store, LOG)
        for version in (1, 2):
            error = await refused(Truncated, store, request(6, "op-6", cursor=appended[version - 1].cursor))
            assert error.available == appended[2].cursor
            assert "trimmed, up to version 3" in str(error)
        assert await self.known(store, LOG) == before
        assert before.head.base == appended[2].cursor

    async def test_the_last_trimmed_event_will_do(self, store: LogStore) -> None:
        appended = await self._five(store)
        await self.trim(store, LOG, 3)
        for version in (3, 4, 5):
            outcome = await put(store, version, f"later-{version}", cursor=appended[version - 1].cursor)
            assert outcome.first == version + 3

    async def test_a_log_that_is_all_trimmed_goes_on_where_it_was(self, store: LogStore) -> None:
        last = (await self._five(store))[-1].cursor
        await self.trim(store, LOG, 5)
        head = await store.head(LOG)
        assert (head.last, head.base) == (last, last)
        assert await store.read(LOG, 1, None, 10) == []
        assert (await put(store, 6, "op-6", cursor=last, expected=last)).first == 6
        assert [entry.version for entry in await store.read(LOG, 1, None, 10)] == [6]

    async def test_a_retry_whose_events_were_trimmed_is_recognised(self, store: LogStore) -> None:
        first = await put(store, 1, "op-1", expected=NONE)
        await put(store, 2, "op-2")
        await self.trim(store, LOG, 1)
        assert await put(store, 1, "op-1", cursor=first.cursor) == first._replace(duplicate=True, before=None)

    async def test_a_deleted_conversation_takes_nothing(self, store: LogStore) -> None:
        last = (await self._five(store))[-1].cursor
        await self.mark_deleted(store, LOG)
        before = await self.known(store, LOG)
        assert before.head.deleted
        error = await refused(ConversationDeleted, store, request(6, "op-6", cursor=last))
        assert "'support' of 'acme'" in str(error)
        assert await self.known(store, LOG) == before

    async def test_a_conversation_can_be_deleted_before_it_was_written(self, store: LogStore) -> None:
        await self.mark_deleted(store, LOG)
        await refused(ConversationDeleted, store, request(1, "op-1", expected=NONE))
        assert (await store.head(LOG)).last == LOG.cursor(0, 0)
