"""Items of every shape that the SDK knows, and of shapes that it does not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

IDS = st.sampled_from(["c1", "c2", "c3"])
TEXTS = st.text(max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
REST = st.dictionaries(st.sampled_from(["id", "status", "phase", "x", "caller"]), JSON, max_size=3)
PARTS = (
    st.fixed_dictionaries(
        {"type": st.sampled_from(["input_text", "output_text"]), "text": TEXTS}, optional={"annotations": JSON}
    )
    | st.fixed_dictionaries({"type": st.just("input_image"), "image_url": TEXTS, "detail": st.just("auto")})
    | st.fixed_dictionaries({"type": st.just("refusal"), "refusal": TEXTS})
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "file", "reasoning", "openai_part", "tool_call"]), "content": JSON}
    )
    | JSON
)


def _with_rest(shape: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda rest, item: {**rest, **item}, REST, shape)


MESSAGES = _with_rest(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "developer"]),
            "content": TEXTS | st.lists(PARTS, max_size=3),
        },
        optional={"type": st.just("message")},
    )
)
CALLS = _with_rest(
    st.fixed_dictionaries(
        {
            "type": st.just("function_call"),
            "call_id": IDS,
            "name": st.sampled_from(["look", "book"]),
            "arguments": TEXTS,
        }
    )
)
RESULTS = _with_rest(
    st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": IDS, "output": TEXTS | JSON})
)
REASONING = _with_rest(
    st.fixed_dictionaries(
        {
            "type": st.just("reasoning"),
            "summary": st.lists(st.fixed_dictionaries({"type": st.just("summary_text"), "text": TEXTS})),
        },
        optional={"encrypted_content": st.none() | TEXTS, "content": JSON},
    )
)
HOSTED = _with_rest(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                [
                    "computer_call",
                    "computer_call_output",
                    "file_search_call",
                    "web_search_call",
                    "image_generation_call",
                    "code_interpreter_call",
                    "local_shell_call",
                    "local_shell_call_output",
                    "mcp_list_tools",
                    "mcp_call",
                    "mcp_approval_request",
                    "mcp_approval_response",
                    "custom_tool_call",
                    "custom_tool_call_output",
                    "apply_patch_call",
                    "apply_patch_call_output",
                    "item_reference",
                    "compaction",
                    "tool_search_output",
                ]
            )
        },
        optional={
            "call_id": IDS | st.none(),
            "action": JSON,
            "output": JSON,
            "results": JSON,
            "approval_request_id": TEXTS,
        },
    )
)
UNKNOWN = st.dictionaries(TEXTS, JSON, max_size=4) | _with_rest(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["function_call", "function_call_output", "message", "text", "openai_item", "openai_json"]
            )
            | JSON
        },
        optional={"call_id": JSON, "name": JSON, "role": JSON, "content": JSON, "output": JSON},
    )
)
ITEMS = MESSAGES | CALLS | RESULTS | REASONING | HOSTED | UNKNOWN
