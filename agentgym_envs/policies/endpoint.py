"""A language model behind an OpenAI-compatible chat completions endpoint, as a `Policy`.

Text in, text out: for evaluation, since nothing is known of the tokens. Any server that speaks the
protocol will do, such as vLLM, llama.cpp or a provider of models.

A request that fails is tried again, with waits that grow and vary, as long as another try may
help; then it is a `PolicyFault`, never an empty reply. A conversation that is too long for the
model ends its episode with the reason ``"context"``: that is the policy's doing and counts against
it. The key comes from the environment alone, and is neither recorded nor shown.

The protocol is one POST of JSON, so the standard library is enough; the official client would
bring ten packages to the same forty lines of judgement about what to try again. Left out:
streaming, which evaluation has no use for.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import math
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from agentgym_envs.actions.tools import reply_of_message
from agentgym_envs.errors import InvalidEvaluation, PolicyFault, PolicyStopped

_MAX_ANSWER = 16 * 1024 * 1024
"""Longest answer that is read, in bytes."""
_MISCONFIGURED = (401, 403, 404)
_TRY_AGAIN = (408, 409, 425, 429)
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error")
_CONTEXT_WORDS = ("maximum context length", "context length of", "exceeds the available context")


@dataclasses.dataclass(frozen=True)
class EndpointSettings:
    """Where the model is and how it is asked.

    Attributes:
        url: of the endpoint, with or without ``/chat/completions`` at its end:
            ``http://localhost:8000/v1``.
        model: name of the model there.
        temperature: of sampling.
        max_tokens: most tokens of a reply.
        request: further fields of every request, over those that are sent anyway; None takes a
            field out: ``{"max_tokens": None, "max_completion_tokens": 512}``.
        timeout_s: seconds that a request may take.
        attempts: how often a request is tried.
        backoff_s: seconds before the second try; doubled for each further one, up to a minute, and
            cut by up to a half at random. A server that says how long to wait is obeyed, up to a
            minute.
        key_variable: environment variable that holds the key; none is sent if it is not set.

    Raises:
        InvalidEvaluation: a URL that is none or holds a password, or numbers that make no sense.
    """

    url: str
    model: str
    temperature: float = 1.0
    max_tokens: int = 512
    request: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 1.0
    key_variable: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        parts = _parts(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidEvaluation(
                f"expected a URL like http://localhost:8000/v1, got {self.url!r}"
            )
        if "@" in parts.netloc:
            raise InvalidEvaluation(
                f"the URL must hold no password; put a key into ${self.key_variable}"
            )
        if not self.model:
            raise InvalidEvaluation("the endpoint needs the name of a model")
        sound = 0 <= self.temperature < math.inf and self.timeout_s > 0
        if not sound or min(self.max_tokens, self.attempts) < 1:
            raise InvalidEvaluation(
                "an endpoint needs temperature >= 0, max_tokens and attempts >= 1 and "
                f"timeout_s > 0; got {self.temperature}, {self.max_tokens}, {self.attempts} and "
                f"{self.timeout_s}"
            )

    @property
    def completions_url(self) -> str:
        """Where requests go."""
        parts = _parts(self.url)
        path = parts.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
        return urlunsplit(parts._replace(path=path))


def _parts(url: str) -> SplitResult:
    """The parts of a URL; none of one that is not written like a URL."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", "", "", "", "")


class EndpointPolicy:
    """A conversation with the model: rules as system message, observations as the user's.

    Args:
        settings: where and how.
        seed: sent with every request, for servers that sample by it; None sends none.
        tools: the ``tools`` of an environment with the action format ``"tools"``. A reply is then
            the whole message, and every call in it is answered by the observation.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        *,
        seed: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._settings = settings
        self._seed = seed
        self._tools = list(tools)
        self._messages: list[Mapping[str, Any]] = []

    def start(self, instructions: str) -> None:
        system = {"role": "system", "content": instructions}
        self._messages = [system] if instructions else []

    def reply(self, observation: str, info: Mapping[str, Any]) -> str:
        """Ask for the next reply.

        Raises:
            PolicyFault: the endpoint did not answer, or answered nonsense, every time.
            PolicyStopped: the conversation is too long for the model.
            InvalidEvaluation: the endpoint knows neither key nor model nor path.
        """
        self._messages += self._answers(observation)
        message = ask(self._settings, self._body())
        if self._tools:
            reply = reply_of_message(message)
            self._messages.append(json.loads(reply))
        else:
            reply = message.get("content") or ""
            self._messages.append({"role": "assistant", "content": reply})
        return reply

    def _answers(self, observation: str) -> list[Mapping[str, Any]]:
        calls = self._messages[-1].get("tool_calls", ()) if self._messages else ()
        if not calls:
            return [{"role": "user", "content": observation}]
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": observation} for call in calls
        ]

    def _body(self) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": self._messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": self._seed,
            "tools": self._tools or None,
            **settings.request,
        }
        return {name: value for name, value in body.items() if value is not None}


def ask(settings: EndpointSettings, body: Mapping[str, Any]) -> dict[str, Any]:
    """The assistant's message that answers `body`.

    Raises:
        PolicyFault, PolicyStopped, InvalidEvaluation: as `EndpointPolicy.reply`.
    """
    for attempt in range(1, settings.attempts + 1):
        try:
            return _message(_post(settings, body))
        except _Failed as failure:
            if not failure.retryable:
                raise PolicyFault(_told(settings, str(failure)), retryable=False) from None
            last = failure
        if attempt < settings.attempts:
            growing = settings.backoff_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
            time.sleep(min(60.0, max(growing, last.wait_s)))
    raise PolicyFault(f"{_told(settings, str(last))}; tried {settings.attempts} times")


class _Failed(Exception):
    """A try that failed."""

    def __init__(self, message: str, *, retryable: bool = True, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.wait_s = wait_s


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key to another place."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def _post(settings: EndpointSettings, body: Mapping[str, Any]) -> bytes:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key := os.environ.get(settings.key_variable):
        if not (key.isascii() and key.isprintable()):
            raise InvalidEvaluation(
                f"the key in ${settings.key_variable} holds characters that no header may hold"
            )
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(body).encode()
    request = urllib.request.Request(settings.completions_url, data, headers)
    deadline = time.monotonic() + settings.timeout_s
    try:
        with _opener.open(request, timeout=settings.timeout_s) as response:
            return _read(response, deadline)
    except urllib.error.HTTPError as error:
        with error:
            raise _judged(settings, error) from None
    except (ValueError, http.client.InvalidURL) as error:
        raise InvalidEvaluation(_told(settings, f"cannot be asked: {error}")) from None
    except (OSError, http.client.HTTPException) as error:  # refused, reset, timed out, cut short
        raise _Failed(f"no answer: {error!r}") from None


def _read(response: Any, deadline: float) -> bytes:
    """The whole answer; each read may take the timeout again, so the sum is watched here."""
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(65536):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > deadline:
            raise _Failed("the answer took longer than the timeout")
        if size > _MAX_ANSWER:
            raise _Failed(f"the answer is longer than {_MAX_ANSWER} bytes")
    return b"".join(pieces)


def _judged(settings: EndpointSettings, error: urllib.error.HTTPError) -> Exception:
    """What an answer with an error status means."""
    try:
        text = error.read(65536).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        text = ""
    said = f"HTTP {error.code}: {' '.join(text.split())[:300] or error.reason}"
    if error.code in (400, 413) and _is_context(text):
        return PolicyStopped(_told(settings, said), reason="context")
    if error.code in _MISCONFIGURED:
        return InvalidEvaluation(
            f"{_told(settings, said)}; check the URL, the name of the model and the key in "
            f"${settings.key_variable}"
        )
    retryable = error.code >= 500 or error.code in _TRY_AGAIN
    return _Failed(said, retryable=retryable, wait_s=_retry_after(error))


def _is_context(text: str) -> bool:
    return any(word in text for word in _CONTEXT_CODES) or any(
        words in text.lower() for words in _CONTEXT_WORDS
    )


def _retry_after(error: urllib.error.HTTPError) -> float:
    try:
        return max(0.0, float(error.headers.get("Retry-After", "")))
    except ValueError:  # none, or a date
        return 0.0


def _message(answer: bytes) -> dict[str, Any]:
    try:
        message = json.loads(answer)["choices"][0]["message"]
        reply_of_message(message)  # knows what a message may be
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        shown = " ".join(answer[:200].decode(errors="replace").split())
        raise _Failed(f"not a chat completion: {shown!r} ({error!r:.200})") from None
    found: dict[str, Any] = message
    return found


def _told(settings: EndpointSettings, text: str) -> str:
    """A message without the key, which servers like to repeat."""
    key = os.environ.get(settings.key_variable)
    told = f"the endpoint {settings.completions_url}, model {settings.model!r}: {text}"
    return told.replace(key, "***") if key else told
