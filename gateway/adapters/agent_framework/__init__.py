"""Recording agents of Microsoft Agent Framework: each run, service call and tool result as it happens.

    agent = record(Agent(client, tools=[…]), log.tenant("blue"), mode="per-service-call")
    await agent.run("Weather in Oslo?", session=agent.create_session(session_id="support-42"))

Needs ``agent-framework-core``.
"""

from gateway.adapters.agent_framework.call_middleware import ServiceCallRecorder
from gateway.adapters.agent_framework.errors import PersistenceWarning, RecordingFailed, UnrecordedWarning
from gateway.adapters.agent_framework.history_provider import EventLogHistory
from gateway.adapters.agent_framework.record import record
from gateway.adapters.agent_framework.tool_middleware import ToolResultRecorder

__all__ = [
    "EventLogHistory",
    "PersistenceWarning",
    "RecordingFailed",
    "ServiceCallRecorder",
    "ToolResultRecorder",
    "UnrecordedWarning",
    "record",
]
