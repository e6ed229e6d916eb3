"""The live view and TensorBoard."""

import io

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agentgym_train.errors import TrainError
from agentgym_train.loggers import TensorBoardLogger, read_metrics
from agentgym_train.loggers.console import ConsoleLogger

VALUES = {
    "rollout/success": 0.25,
    "rollout/horizon": 8.0,
    "train/entropy": 0.5,
    "time/rollout": 3.0,
    "time/update": 1.0,
}


def test_on_a_terminal_the_view_shows_progress_numbers_and_where_the_time_goes():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    logger = ConsoleLogger(console, total=40)
    logger.log(19, "grpo", VALUES)
    logger.close()
    shown = screen.getvalue()
    for part in ("grpo", "20/40", "25%", "0.500", "time: rollout 75%, update 25%"):
        assert part in shown


def test_a_step_without_an_update_shows_no_number_of_an_older_one():
    screen = io.StringIO()
    logger = ConsoleLogger(Console(file=screen, width=200), total=20)
    logger.log(0, "grpo", {"train/loss": 0.75, "eval/success": 0.5})
    logger.log(9, "grpo", {"rollout/success": 0.0, "train/samples": 0.0})
    logger.close()
    assert screen.getvalue() == "grpo 10: success 0%  dev success 50.0%\n"


def test_in_a_file_a_line_is_written_every_ten_steps():
    screen = io.StringIO()
    logger = ConsoleLogger(Console(file=screen, width=20), total=40)  # lines are not broken
    for step in range(25):
        logger.log(step, "grpo", VALUES)
    logger.close()
    lines = screen.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["grpo 10", "grpo 20"]
    assert "success 25%" in lines[0]
    assert "KL" not in lines[0]  # a number that was not logged is left out


def test_tensorboard_reads_what_was_logged_and_a_resume_hides_what_comes_again(tmp_path):
    logger = TensorBoardLogger(tmp_path)
    for step in range(5):
        logger.log(step, "grpo", {"train/loss": float(step)})
    logger.close()
    logger = TensorBoardLogger(tmp_path, resume_at=3)
    logger.log(3, "grpo", {"train/loss": 30.0})
    logger.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [
        (0, 0.0),
        (1, 1.0),
        (2, 2.0),
        (3, 30.0),
    ]


def test_a_damaged_line_of_the_log_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n\0\0\n{"step": 2}\n')
    with pytest.raises(TrainError, match=r"metrics\.jsonl, line 2, is no record"):
        list(read_metrics(path))
