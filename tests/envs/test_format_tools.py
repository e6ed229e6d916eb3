import json

import gymnasium
import pytest
from counting import CountingEnv
from toys import GRAMMAR, spin

from agentgym_envs.actions import Answer, Grammar, action_format
from agentgym_envs.actions.tools import reply_of_message, tool_schemas
from agentgym_envs.episodes import read_episodes, write_episodes
from agentgym_envs.errors import CommandError, FormatError
from agentgym_envs.policies import ScriptedPolicy, run_episode
from agentgym_envs.wrappers import TextWrapper

TOOLS = action_format("tools")
CANONICAL = (
    '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",'
    '"function":{"name":"go_to","arguments":"{\\"target\\":\\"red ball 1\\"}"}}]}'
)


def message(*calls, **fields):
    return json.dumps({"role": "assistant", "content": None, "tool_calls": calls} | fields)


def call(name="wait", arguments="{}", **fields):
    return {"id": "abc", "type": "function", "function": {"name": name, "arguments": arguments}} | (
        fields
    )


def command_in(reply, *, strict=False):
    return TOOLS.parse(reply, GRAMMAR, strict=strict).text


def refusal(reply, *, strict=False, kind=FormatError):
    with pytest.raises(CommandError) as error:
        TOOLS.parse(reply, GRAMMAR, strict=strict)
    assert type(error.value) is kind
    return str(error.value)


def test_a_command_is_an_assistant_message_with_one_call():
    command = GRAMMAR.parse("go to red ball 1")
    assert TOOLS.render(command) == CANONICAL
    assert json.loads(TOOLS.render(command, "I see\nit."))["content"] == "I see\nit."
    assert '"arguments":"{\\"target\\":\\"é\\"}"' in TOOLS.render(GRAMMAR.parse("go to é"))


@pytest.mark.parametrize(
    "reply",
    [
        CANONICAL,
        f" {CANONICAL}\n",
        message(call("go_to", '{"target": "red ball 1"}'), refusal=None, annotations=[]),
        message(call("go_to", {"target": "red ball 1"})),
        message(call("go_to", '{"target": "red ball 1"}', id=None, index=0)),
        '{"tool_calls":[{"function":{"name":"Go To","parameters":{"target":"red ball 1"}}}]}',
        '{"tool_calls":[{"name":"go_to","arguments":{"target":"red ball 1"}}]}',
    ],
)
def test_lenient_reading_forgives_what_the_call_does_not_need(reply):
    assert command_in(reply) == "go to red ball 1"
    if reply != CANONICAL:
        assert "canonical form" in refusal(reply, strict=True)


def test_strict_reading_takes_any_content_id_and_spelling_of_arguments():
    reply = CANONICAL.replace("null", '"Now."').replace("call_1", "x9").replace("\\u003a", ": ")
    assert command_in(reply, strict=True) == "go to red ball 1"
    assert "canonical" in refusal(reply.replace(",", ", "), strict=True)
    wrong_kind = CANONICAL.replace("go_to", "go_to_room").replace("target", "number")
    wrong_kind = wrong_kind.replace("red ball 1", "3")
    assert command_in(wrong_kind) == "go to room 3"
    assert "Expected number of go_to_room as 3, got '3'" in refusal(wrong_kind, strict=True)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("go to ball", "Expected an assistant message, a JSON object, got"),
        ("[]", "Expected an assistant message, a JSON object, got"),
        ("{", "is not JSON"),
        (f"{CANONICAL}{CANONICAL}", "is not JSON: Extra data"),
        ('{"role":"assistant","content":"I wait."}', "exactly one tool call in the message, got 0"),
        (message(), "exactly one tool call in the message, got 0"),
        (message(call(), call()), "exactly one tool call in the message, got 2"),
        (message(tool_calls={"0": call()}), "exactly one tool call in the message, got 0"),
        (message("wait"), "exactly one tool call in the message, got 1"),
        (message({"id": "x"}), "The tool call names no function."),
        (message(call(name=None)), "The tool call names no function."),
        (message(call(arguments="{")), '"{" is not JSON'),
        (message(call(arguments="[]")), "The arguments of the call are no object."),
    ],
)
def test_a_refusal_says_what_is_wrong(reply, text):
    for strict in (False, True):
        assert text in refusal(reply, strict=strict)


def test_calls_that_do_not_fit_are_no_error_of_the_format():
    assert "is not a command" in refusal(message(call("fly")), kind=CommandError)
    assert "does not take x" in refusal(message(call(arguments='{"x":1}')), kind=CommandError)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (CANONICAL, Answer("tool", "call_1")),
        (message(call(id="xyz")), Answer("tool", "xyz")),
        (message(call(id=None)), Answer("tool", "call_1")),
        (message(call(id="")), Answer("tool", "call_1")),
        (message(call("no such function", "no JSON")), Answer("tool", "abc")),
        (message(call(id="\ud800")), Answer("tool", "\ufffd")),
        (message(), Answer()),
        (message(call(), call()), Answer()),
        ("wait", Answer()),
        ("{" * 100, Answer()),
    ],
)
def test_an_observation_answers_the_only_call_or_the_user(reply, answer):
    assert TOOLS.answer_to(reply) == answer


def test_a_message_of_the_api_has_one_canonical_reply():
    given = {
        "content": None,
        "refusal": None,
        "role": "assistant",
        "tool_calls": [
            {
                "function": {"arguments": '{"target": "é"}', "name": "go_to"},
                "id": "abc",
                "index": 0,
                "type": "function",
            }
        ],
    }
    reply = reply_of_message(given)
    assert reply == (
        '{"role":"assistant","content":null,"tool_calls":[{"id":"abc","type":"function",'
        '"function":{"name":"go_to","arguments":"{\\"target\\": \\"é\\"}"}}]}'
    )
    assert command_in(reply, strict=True) == "go to é"
    assert reply_of_message(json.loads(reply)) == reply
    text_only = reply_of_message({"role": "assistant", "content": "Hm."})
    assert text_only == '{"role":"assistant","content":"Hm."}'


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"content": 3},
        {"tool_calls": [3]},
        {"tool_calls": [{}]},
        {"tool_calls": [{"function": {"name": None}}]},
        {"tool_calls": [{"id": 3, "function": {"name": "wait"}}]},
        {"tool_calls": [{"function": {"name": "wait", "arguments": [3]}}]},
    ],
)
def test_what_is_no_message_is_the_callers_mistake(given):
    with pytest.raises(ValueError, match="not an assistant message"):
        reply_of_message(given)


def test_schemas_tell_kinds_defaults_and_what_is_required():
    schemas = tool_schemas(Grammar([*GRAMMAR.verbs, spin]))
    assert [schema["function"]["name"] for schema in schemas] == [
        *("go_to", "go_to_room", "put", "wait", "spin")
    ]
    assert schemas[0] == {
        "type": "function",
        "function": {
            "name": "go_to",
            "description": "Walk to a thing. It must be in view. "
            'Examples: {"target":"red ball 1"} {"target":"door 2"}',
            "parameters": {
                "type": "object",
                "properties": {"target": {"type": "string"}},
                "required": ["target"],
                "additionalProperties": False,
            },
        },
    }
    assert schemas[3]["function"]["description"] == "Do nothing."
    assert schemas[-1]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "side": {"type": "string"},
            "times": {"type": "integer", "default": 1},
            "why": {"type": "string"},
        },
        "required": ["side"],
        "additionalProperties": False,
    }


def test_an_environment_tells_its_tools_through_wrappers_as_fresh_objects():
    env = TextWrapper(TextWrapper(CountingEnv(action_format="tools")))
    assert env.tools == tool_schemas(env.grammar)
    env.tools[0]["function"].clear()
    assert env.tools == tool_schemas(env.grammar)


def test_records_keep_role_and_call_of_every_observation(tmp_path):
    env = gymnasium.make("Test/Counting-v0", action_format="tools", tasks=["counting/train/9"])
    replies = [
        message({"id": "first", "function": {"name": "add", "arguments": '{"amount": 9}'}}),
        "I am done.",
        message({"id": "second", "function": {"name": "fly", "arguments": "{}"}}),
        env.unwrapped.render_command("done", "Nine it is."),
    ]
    episode = run_episode(env, ScriptedPolicy(replies))
    assert [(turn.role, turn.call_id) for turn in episode.turns] == [
        ("tool", "first"),
        (None, None),
        ("tool", "second"),
        ("tool", "call_1"),
    ]
    assert [turn.action_valid for turn in episode.turns] == [True, False, False, True]
    assert episode.success
    write_episodes(tmp_path / "episodes.jsonl", [episode])
    assert list(read_episodes(tmp_path / "episodes.jsonl")) == [episode]
