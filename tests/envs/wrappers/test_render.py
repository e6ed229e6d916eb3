import itertools

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv
from prose import ProseEnv

from agentgym_envs.errors import Unsupported
from agentgym_envs.wrappers import History, RenderText, TokenBudget, picture, render

pytest.importorskip("PIL")

NINE = {"task": "counting/train/9"}
SHAPE = (720, 960, 3)


def make(env=None, **arguments) -> RenderText:
    env = RenderText(env or ProseEnv(), **arguments)
    env.reset(options={"task": env.tasks[0].id})
    return env


def ink(frame, color):
    """Where the frame has this color: bool (height, width)."""
    return (frame == np.array(color, dtype=np.uint8)).all(axis=-1)


# --------------------------------------------------------------------------------------- frames


def test_frames_are_pictures_of_one_size():
    env = make()
    frames = [env.render()]
    for reply in ("add 3", "x" * 100_000, "\u4e2d\u6587 \U0001f600\n" * 500, "", "done"):
        env.step(reply)
        frames.append(env.render())
    for frame in frames:
        assert (frame.shape, frame.dtype) == (SHAPE, np.uint8)
    for one, other in itertools.pairwise(frames):
        assert (one != other).any()


def test_reply_and_observation_have_their_colors():
    env = make()
    assert not ink(env.render(), render._REPLY).any()
    env.step("add 3")
    frame = env.render()
    rows = [
        np.flatnonzero(ink(frame, color).any(axis=1))
        for color in (render._STATUS, render._REPLY, render._OBSERVATION)
    ]
    for above, below in itertools.pairwise(rows):
        assert above.max() < below.min()


def test_text_is_drawn_glyph_by_glyph():
    """The glyphs of the bitmap font, pixel by pixel, and each pixel `scale` times."""
    image_font = pytest.importorskip("PIL.ImageFont")
    mask = image_font.load_default_imagefont().getmask("AbA")
    glyph = np.array(mask, dtype=bool).reshape(mask.size[::-1])
    color = (9, 8, 7)
    frame = picture.draw([picture.Line("", color), picture.Line("AbA", color)], 4, 3, scale=2)
    assert frame.shape == (12 * 4 * 2, 6 * 6 * 2, 3)
    assert glyph.any()
    expected = np.zeros((48, 36), dtype=bool)
    expected[12 + 6 :, 6:][: glyph.shape[0], : glyph.shape[1]] = glyph
    np.testing.assert_array_equal(ink(frame, color), expected.repeat(2, 0).repeat(2, 1))


def test_size_is_chosen_in_characters():
    assert make(columns=21, rows=9, scale=1).render().shape == (12 * 10, 6 * 23, 3)


def test_a_picture_of_its_own_is_kept_unless_told_otherwise():
    assert make(CountingEnv(render_mode="rgb_array")).render().shape == (4, 6, 3)
    assert make(CountingEnv(render_mode="rgb_array"), replace=True).render().shape == SHAPE
    for mode in (None, "ansi"):
        env = make(CountingEnv(render_mode=mode))
        assert (env.render_mode, env.render().shape) == ("rgb_array", SHAPE)
    assert env.unwrapped.render_mode == "ansi"


def test_metadata_say_that_there_are_pictures():
    env = make()
    assert env.metadata == {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    assert ProseEnv.metadata["render_modes"] == ["ansi"]


def test_what_was_drawn_is_part_of_the_state():
    env = make(CountingEnv())
    env.step("add 3")
    state, twin, frame = env.save_state(), env.clone(), env.render()
    env.step("x")
    assert (env.render() != frame).any()
    env.load_state(state)
    other = make(CountingEnv(), columns=20, rows=8, scale=1)
    other.load_state(state)
    assert (env.render() == frame).all()
    assert (twin.render() == frame).all()
    assert other.render().shape == (108, 132, 3)


def test_nothing_is_drawn_before_a_reset():
    with pytest.raises(gymnasium.error.ResetNeeded):
        RenderText(ProseEnv()).render()


def test_the_status_tells_how_the_episode_stands():
    env = make(TokenBudget(CountingEnv(), max_tokens=3))
    env.reset(options=NINE)
    env.step("add 9")
    env.step("x")
    lines = [line.text for line in env._lines()]
    assert lines[:4] == [
        "counting/train/9  turn 2/10  reward 0  return 0.5  score 0.5  budget",
        "",
        "> x",
        "",
    ]
    assert lines[4].startswith('"x" is not a command. Commands are: ')


def test_without_pillow_the_wrapper_says_what_to_install(monkeypatch):
    monkeypatch.setattr(picture.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r'pip install "agentgym-suite\[render\]"'):
        RenderText(ProseEnv())


@pytest.mark.parametrize(
    "arguments", [{"columns": 19}, {"rows": 7}, {"scale": 0}, {"scale": 1.5}, {"replace": 0}]
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises((ValueError, TypeError), match="got"):
        RenderText(ProseEnv(), **arguments)


# ---------------------------------------------------------------------------------------- lines


def test_lines_break_at_blanks_and_maps_stay_as_they_are():
    assert picture.wrap("one two three\n\n #  #\nx" + "y" * 9, 8, 9) == [
        "one two",
        "three",
        "",
        " #  #",
        "xyyyyyyy",
        "yy",
    ]


def test_what_does_not_fit_is_cut_and_marked():
    assert picture.wrap("a\nb\nc", 8, 3) == ["a", "b", "c"]
    assert picture.wrap("a\nb\nc\nd", 8, 3) == ["a", "b", "..."]
    assert picture.wrap("x" * 25, 8, 3) == ["xxxxxxxx", "xxxxxxxx", "..."]
    assert picture.wrap("x" * 24, 8, 3) == ["x" * 8] * 3


def test_what_the_font_lacks_is_shown_as_unknown():
    assert picture.drawable("caf\u00e9 \u201ca\u201d \u2014 \u2026") == 'caf\u00e9 "a" - ...'
    assert picture.drawable("\u4e2d\u0416\x00\x1b[1m\U0001f600\r\n\ta") == (
        "\u00bf\u00bf\u00bf\u00bf[1m\u00bf\n    a"
    )


# --------------------------------------------------------------------------------------- videos


def test_gymnasium_collects_frames():
    env = gymnasium.wrappers.RenderCollection(make(columns=20, rows=8, scale=1))
    env.reset()
    env.step("add 3")
    frames = env.render()
    assert (env.render_mode, len(frames)) == ("rgb_array_list", 2)
    assert frames[0].shape == frames[1].shape == (108, 132, 3)


@pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning")
def test_gymnasium_records_a_video(tmp_path):
    moviepy = pytest.importorskip("moviepy")
    env = History(ProseEnv(), turns=2)
    env = RenderText(env, columns=40, rows=12, scale=1)
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path / "videos"), name_prefix="counting")
    env.reset(options={"task": env.get_wrapper_attr("tasks")[0].id})
    for reply in ("add 1", "nonsense", "add 2", "done"):
        env.step(reply)
    env.close()
    (path,) = (tmp_path / "videos").iterdir()
    assert path.name == "counting-episode-0.mp4"
    with moviepy.VideoFileClip(str(path)) as clip:
        assert clip.size == [6 * 42, 12 * 13]
        assert round(clip.duration * clip.fps) == 5
        first, last = clip.get_frame(0), clip.get_frame(clip.duration - 0.5 / clip.fps)
    assert first.max() > 150
    assert (np.abs(first.astype(int) - last) > 100).any()
