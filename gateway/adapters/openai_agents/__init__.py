"""Sessions of the OpenAI Agents SDK in the log, in place of its ``RedisSession``.

    session = EventLogSession("support-42", tenant=log.tenant("blue"))
    async with session.run(agent="support") as run:          # or without: told from the items' place
        await Runner.run(agent, "Hello", session=session, hooks=run)

Needs ``openai-agents``.
"""

from gateway.adapters.openai_agents.errors import ItemInvalid, SessionClosed
from gateway.adapters.openai_agents.recorded_run import RecordedRun
from gateway.adapters.openai_agents.session import EventLogSession

__all__ = ["EventLogSession", "ItemInvalid", "RecordedRun", "SessionClosed"]
