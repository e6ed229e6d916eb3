"""Every algorithm in a whole run: it starts, learns, stops and goes on to the same weights."""

import shlex

import pytest
from safetensors.torch import load_file

from agentgym_train import assemble, loop
from agentgym_train.commands.settings import parse_settings
from agentgym_train.config import read_config
from agentgym_train.loggers import JsonlLogger, Loggers, read_metrics
from agentgym_train.runs import Interrupted

SETTINGS = shlex.split("""
    --run.steps 4 --run.threads 1 --run.checkpoint-every 1 --run.save-episodes-every 0
    --env.num-envs 16 --model.hidden-size 64 --model.num-layers 1 --model.num-heads 2
    --model.vocab-size 400 --warmup.steps 12 --warmup.demonstrations.episodes 100
    --warmup.learning-rate 1e-2 --batch.tasks-per-step 4 --batch.group-size 4 --eval.tasks 2
    --eval.every 0 --horizon.stages 2 4 --horizon.steps 2 --eval.horizon 4
""")
ALGORITHMS = {
    "grpo": "--grpo.scale batch --loss.kl-coefficient 0.1",
    "rloo": "--loss.ratio sequence --loss.aggregation sequence --credit.permute-rewards",
    "reinforce_pp": "--loss.kl-coefficient 0.1 --loss.kl-in reward --loss.kl-estimator k1",
    "ppo": "--critic.learning-rate 1e-3 --credit.on-horizon bootstrap --loss.importance-cap 2",
    "gigpo": "--loss.ratio turn --loss.aggregation group --loss.dual-clip 3 --refill.groups 4",
    "dpo": "--dpo.beta 0.5 --dpo.label-smoothing 0.1",
    "evolve": "--evolve.min-score 0.5 --evolve.weighted --evolve.demonstrations 4",
}


class StopAfter:
    """Asks to stop when the log has so many steps."""

    def __init__(self, path, steps):
        self.path, self.steps = path, steps

    def __call__(self):
        if sum(1 for _ in read_metrics(self.path)) >= self.steps:
            raise Interrupted


def go(parts, stop_after=99):
    logger = Loggers([JsonlLogger(parts.folder.metrics, resume_at=parts.progress.step)])
    try:
        loop.train(parts, logger, StopAfter(parts.folder.metrics, stop_after))
    finally:
        logger.close()
        parts.close()


def weights_of(folder):
    path = folder.checkpoints / "step-000016" / "model" / "model.safetensors"
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(path).items()}


def log_of(folder):
    return [
        {
            name: value
            for name, value in line.items()
            if not name.startswith(("time/", "speed/", "memory/"))
        }
        for line in read_metrics(folder.metrics)
    ]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_that_was_stopped_ends_with_the_same_weights(name, tmp_path):
    def start(path):
        words = [*SETTINGS, *shlex.split(ALGORITHMS[name]), "--run.algorithm", name]
        return assemble.start_run(parse_settings([*words, "--run.dir", str(tmp_path / path)]))

    whole = start("whole")
    go(whole)
    stopped = start("stopped")
    for steps in (13, 14, 15):
        with pytest.raises(Interrupted):
            go(stopped, stop_after=steps)
        config = read_config(stopped.folder.config)
        stopped = assemble.resume_run(config, stopped.folder)
    go(stopped)
    assert weights_of(stopped.folder) == weights_of(whole.folder)
    assert log_of(stopped.folder) == log_of(whole.folder)
    learned = [line for line in log_of(whole.folder) if line["phase"] == name]
    assert len(learned) == 4
    assert any(line.get("train/grad_norm", 0) > 0 for line in learned)
