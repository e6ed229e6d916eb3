"""A policy behind an endpoint, against a real server."""

import json
import threading
import time

import pytest
from chat_server import OK, ChatServer, break_off, drip, hang_up, send, sleep
from counting import CountingEnv

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidEvaluation, PolicyFault, PolicyStopped
from agentgym_envs.policies import run_episode
from agentgym_envs.policies.endpoint import EndpointPolicy, EndpointSettings

NINE = "counting/train/9"


def solve(body):
    """Reads the goal and answers it."""
    seen = body["messages"][-1]["content"]
    if seen.startswith("Make the counter show "):
        return f"add {seen.split()[4].rstrip(',')}"
    return "done"


@pytest.fixture
def serve():
    """Starts servers; gives a server and the settings for it."""
    with_servers = []

    def start(answer=solve, faults=(), **settings):
        manager = ChatServer(answer, faults).running()
        server = manager.__enter__()
        with_servers.append(manager)
        fields = {"backoff_s": 0.001, "timeout_s": 10.0, "attempts": 3} | settings
        return server, EndpointSettings(server.url, "tiny", **fields)

    yield start
    for manager in with_servers:
        manager.__exit__(None, None, None)


def ask_once(settings):
    policy = EndpointPolicy(settings)
    policy.start("rules")
    return policy.reply("Make the counter show 3, then say done.", {})


def test_a_conversation_grows_turn_by_turn(serve, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server, settings = serve(temperature=0.5, max_tokens=7)
    env = CountingEnv()
    episode = run_episode(env, EndpointPolicy(settings, seed=3), task=NINE)
    assert [turn.reply for turn in episode.turns] == ["add 9", "done"]
    assert episode.success
    assert server.paths == ["/v1/chat/completions"] * 2
    first, second = server.requests
    assert first == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": env.instructions},
            {"role": "user", "content": episode.first_observation},
        ],
        "temperature": 0.5,
        "max_tokens": 7,
        "seed": 3,
    }
    assert second["messages"] == [
        *first["messages"],
        {"role": "assistant", "content": "add 9"},
        {"role": "user", "content": episode.turns[0].observation},
    ]
    assert "Authorization" not in server.headers[0]


def test_a_new_episode_begins_a_new_conversation(serve):
    server, settings = serve()
    policy = EndpointPolicy(settings)
    for _ in range(2):
        run_episode(CountingEnv(), policy, task=NINE)
    assert [len(body["messages"]) for body in server.requests] == [2, 4, 2, 4]


def test_tools_are_sent_and_every_call_is_answered(serve):
    call = {"type": "function", "function": {"name": "add", "arguments": '{"amount": 9}'}}
    done = {"type": "function", "function": {"name": "done", "arguments": "{}"}}
    messages = iter(
        [
            {"content": None, "tool_calls": [{"id": "a", **call}, {"id": "b", **call}]},
            {"content": "thinking", "tool_calls": [{"id": "c", **call}]},
            {"content": None, "tool_calls": [{"id": "d", **done}]},
        ]
    )
    server, settings = serve(lambda body: next(messages))
    env = CountingEnv(action_format="tools")
    episode = run_episode(env, EndpointPolicy(settings, tools=env.tools), task=NINE)
    assert [turn.action_valid for turn in episode.turns] == [False, True, True]
    assert episode.success
    assert [turn.call_id for turn in episode.turns] == [None, "c", "d"]
    assert server.requests[0]["tools"] == env.tools
    told = [message for message in server.requests[2]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in told] == ["a", "b", "c"]
    assert told[0]["content"] == told[1]["content"] == episode.turns[0].observation


def test_fields_of_the_request_can_be_added_and_taken_out(serve):
    request = {"max_tokens": None, "max_completion_tokens": 5, "top_p": 0.9}
    server, settings = serve(request=request)
    ask_once(settings)
    assert "max_tokens" not in server.requests[0]
    assert server.requests[0]["max_completion_tokens"] == 5
    assert "seed" not in server.requests[0]


@pytest.mark.parametrize(
    "fault",
    [
        429,
        500,
        503,
        408,
        hang_up,
        break_off,
        (200, "this is no JSON"),
        (200, "{}"),
        (200, '{"choices": []}'),
        (200, '{"choices": [{"message": {"content": 5}}]}'),
        (200, '{"choices": [{"message": null}]}'),
        (200, "[" * 100_000),
    ],
)
def test_what_may_work_next_time_is_tried_again(serve, fault):
    server, settings = serve(faults=[fault, fault])
    assert ask_once(settings) == "add 3"
    assert len(server.requests) == 3
    assert server.requests[0] == server.requests[2]


def test_what_never_works_is_a_fault_that_says_what_came(serve):
    server, settings = serve(faults=[(500, "out of\nmemory")] * 9)
    with pytest.raises(PolicyFault, match=r"model 'tiny': HTTP 500: out of memory; tried 3 times"):
        ask_once(settings)
    assert len(server.requests) == 3
    server, settings = serve(faults=[(200, "<html>")] * 9)
    with pytest.raises(PolicyFault, match="not a chat completion: '<html>'"):
        ask_once(settings)


def test_a_server_that_is_silent_or_slow_is_given_up(serve):
    for fault in (sleep(1.0), drip):
        _, settings = serve(faults=[fault] * 2, timeout_s=0.2, attempts=2)
        started = time.monotonic()
        with pytest.raises(PolicyFault, match="tried 2 times"):
            ask_once(settings)
        assert time.monotonic() - started < 9


def test_nobody_at_the_address_is_a_fault():
    with ChatServer(solve).running() as server:
        url = server.url
    settings = EndpointSettings(url, "tiny", attempts=2, backoff_s=0.001)
    with pytest.raises(PolicyFault, match=r"no answer: .*refused"):
        ask_once(settings)


def test_a_request_that_is_refused_is_not_repeated(serve):
    server, settings = serve(faults=[(422, "unknown field seed")])
    with pytest.raises(PolicyFault, match="HTTP 422: unknown field seed") as caught:
        ask_once(settings)
    assert not caught.value.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_model_stops_the_evaluation(serve, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server, settings = serve(faults=[(status, "bad key sk-secret")])
    with pytest.raises(InvalidEvaluation, match=r"bad key \*\*\*; check .* \$OPENAI_API_KEY$"):
        ask_once(settings)
    assert server.headers[0]["Authorization"] == "Bearer sk-secret"


@pytest.mark.parametrize(
    "text",
    [
        '{"error": {"code": "context_length_exceeded"}}',
        '{"message": "This model\'s maximum context length is 64 tokens."}',
    ],
)
def test_a_conversation_that_is_too_long_ends_the_episode_and_is_no_fault(serve, text):
    _, settings = serve(faults=[OK, (400, text)])
    episode = run_episode(CountingEnv(), EndpointPolicy(settings), task=NINE)
    assert (episode.end_reason, len(episode.turns)) == (EndReason.CONTEXT, 1)
    assert not episode.success
    _, settings = serve(faults=[(400, text)])
    with pytest.raises(PolicyStopped, match="HTTP 400"):
        ask_once(settings)


def test_the_server_may_say_how_long_to_wait(serve):
    def busy(handler):
        send(handler, 429, "slow down", Retry_After="0.3")

    _, settings = serve(faults=[busy])
    started = time.monotonic()
    assert ask_once(settings) == "add 3"
    assert time.monotonic() - started >= 0.3


def test_the_key_is_not_taken_elsewhere(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    other, _ = serve()
    server, settings = serve(
        faults=[lambda handler: send(handler, 302, "", Location=f"{other.url}/chat/completions")]
    )
    with pytest.raises(PolicyFault, match="HTTP 302"):
        ask_once(settings)
    assert (len(server.requests), len(other.requests)) == (1, 0)


def test_a_key_that_no_header_can_hold_is_not_shown(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk\nsecret")
    _, settings = serve()
    with pytest.raises(InvalidEvaluation, match="no header may hold") as caught:
        ask_once(settings)
    assert "secret" not in str(caught.value)


def test_conversations_side_by_side_do_not_mix(serve):
    _, settings = serve()
    solved = []

    def play(number):
        episode = run_episode(
            CountingEnv(), EndpointPolicy(settings), task=f"counting/train/{number}"
        )
        solved.append(episode.success)

    threads = [threading.Thread(target=play, args=(n,)) for n in (3, 6, 9) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert solved == [True] * 9


def test_an_address_may_name_the_path_and_a_query():
    def url_of(url):
        return EndpointSettings(url, "m").completions_url

    assert url_of("http://h:1/v1") == url_of("http://h:1/v1/") == "http://h:1/v1/chat/completions"
    assert url_of("http://h:1/v1/chat/completions") == "http://h:1/v1/chat/completions"
    assert url_of("https://h/d?api-version=1") == "https://h/d/chat/completions?api-version=1"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"url": "localhost:8000"}, "expected a URL like .*, got 'localhost:8000'"),
        ({"url": "file:///etc/passwd"}, "expected a URL"),
        ({"url": "http://[::1"}, r"expected a URL like .*, got 'http://\[::1'"),
        ({"url": "http://me:secret@h/v1"}, "must hold no password; put a key into .OPENAI_API_KEY"),
        ({"model": ""}, "needs the name of a model"),
        ({"temperature": -1.0}, "got -1.0, 512, 5 and 120.0"),
        ({"temperature": float("nan")}, "got nan"),
        ({"attempts": 0}, "got 1.0, 512, 0"),
        ({"timeout_s": 0}, "and 0$"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, complaint):
    with pytest.raises(InvalidEvaluation, match=complaint):
        EndpointSettings(**{"url": "http://h/v1", "model": "m"} | changes)


def test_lone_surrogates_of_a_model_are_text_like_any_other(serve):
    text = json.loads('"\\ud800"')
    server, settings = serve(lambda body: text)
    episode = run_episode(CountingEnv(), EndpointPolicy(settings), task=NINE, horizon=2)
    assert [turn.reply for turn in episode.turns] == ["\ufffd"] * 2
    assert server.requests[1]["messages"][2]["content"] == text
