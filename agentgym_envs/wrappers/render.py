"""`RenderText`: pictures of any text environment, so that Gymnasium's `RecordVideo` works.

A frame shows what an episode is made of: a line about the turn, the last reply, and the observation
that answered it. Its size is fixed when the wrapper is made, as a video needs it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from agentgym_envs import arguments
from agentgym_envs.spaces import to_utf8
from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.picture import Line, draw, require_pillow, wrap

_STATUS, _REPLY, _OBSERVATION = (140, 148, 160), (240, 200, 110), (225, 228, 232)


class RenderText(TextWrapper):
    """Draws the episode as text: ``render_mode`` is ``"rgb_array"``, whatever the family can.

    Make the environment without a `render_mode`. A picture of its own, ``"rgb_array"``, is kept
    unless `replace` says otherwise. Long replies and observations are cut, and end with ``...``.
    What is not Latin-1 is shown as ``¿``. Needs Pillow.

    Args:
        env: a `TextEnv` or `TextWrapper`.
        columns: characters a line, at least 20.
        rows: lines, at least 8.
        scale: pixels of the picture a pixel of the 6x12 font, at least 1.
        replace: draw text also where the environment makes a picture itself.

    Raises:
        ValueError, TypeError: an argument of another kind.
    """

    render_mode: str | None = "rgb_array"
    neutral_arguments: ClassVar[frozenset[str]] = frozenset({"columns", "rows", "scale", "replace"})

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        columns: int = 78,
        rows: int = 29,
        scale: int = 2,
        replace: bool = False,
    ) -> None:
        super().__init__(env, columns=columns, rows=rows, scale=scale, replace=replace)
        self._columns = arguments.whole_number("columns", columns, least=20)
        self._rows = arguments.whole_number("rows", rows, least=8)
        self._scale = arguments.whole_number("scale", scale, least=1)
        self._draws = arguments.flag("replace", replace) or env.render_mode != "rgb_array"
        require_pillow()
        modes = env.metadata["render_modes"]
        if "rgb_array" not in modes:
            self.metadata = env.metadata | {"render_modes": [*modes, "rgb_array"]}
        self._status = self._reply = self._observation = ""
        self._return = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `TextEnv.reset`."""
        observation, info = super().reset(seed=seed, options=options)
        self._return = 0.0
        self._status = f"{info['task_id']}  turn 0/{self.horizon}"
        self._reply, self._observation = "", self._cut(observation)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn, see `TextEnv.step`."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._return += reward
        self._status = (
            f"{info['task_id']}  turn {info['turn']}/{self.horizon}  reward {reward:g}  "
            f"return {self._return:g}  score {info['score']:g}  {info['end_reason']}"
        )
        self._reply, self._observation = f"> {self._cut(action)}", self._cut(observation)
        return observation, reward, terminated, truncated, info

    def render(self) -> Any:
        """The episode as it is now, or the environment's own picture.

        Returns:
            uint8 (12 * (rows + 1) * scale, 6 * (columns + 2) * scale, 3), where it is drawn here.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        if not self._draws:
            return self.inner.render()
        _ = self.task  # raises if there is none
        return draw(self._lines(), self._columns, self._rows, self._scale)

    def _lines(self) -> list[Line]:
        lines = [Line(text, _STATUS) for text in wrap(self._status, self._columns, 2)]
        lines.append(Line("", _STATUS))
        if self._reply:
            reply = wrap(self._reply, self._columns, self._rows // 3)
            lines += [Line(text, _REPLY) for text in [*reply, ""]]
        observation = wrap(self._observation, self._columns, self._rows - len(lines))
        return lines + [Line(text, _OBSERVATION) for text in observation]

    def _cut(self, text: str) -> str:
        return to_utf8(text[: self._columns * self._rows + 1])

    def _save_own(self) -> Any:
        return [self._status, self._reply, self._observation, self._return]

    def _load_own(self, own: Any) -> None:
        *texts, total = own
        self._status, self._reply, self._observation = arguments.text_list("texts", texts)
        self._return = arguments.finite("return", total)
