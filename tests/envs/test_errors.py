import pickle

import pytest

from agentgym_envs import errors


def test_every_error_is_an_agentgym_error_and_what_the_tree_says():
    for error, bases in {
        errors.UnknownName: (ValueError,),
        errors.InvalidTask: (ValueError,),
        errors.InvalidRecord: (ValueError,),
        errors.InvalidState: (ValueError,),
        errors.Unsupported: (NotImplementedError,),
        errors.InvalidEvaluation: (ValueError,),
        errors.PolicyFault: (RuntimeError,),
        errors.EnvFault: (RuntimeError,),
        errors.WorkerFault: (errors.EnvFault,),
        errors.CommandError: (ValueError,),
        errors.FormatError: (errors.CommandError,),
    }.items():
        assert issubclass(error, (errors.AgentGymError, *bases))
        assert all(issubclass(error, base) for base in bases)


def test_an_unknown_name_suggests_near_ones_whatever_the_case():
    error = errors.UnknownName("level", "gotoredbal", ["GoToRedBall", "GoToLocal", "Open"])
    assert str(error) == "unknown level 'gotoredbal'; did you mean 'GoToRedBall' or 'GoToLocal'?"


def test_an_unknown_name_lists_all_of_a_few():
    with pytest.raises(
        errors.UnknownName, match=r"^unknown split 'x'; valid are train, dev, test$"
    ):
        raise errors.UnknownName("split", "x", ("train", "dev", "test"))


def test_an_unknown_name_lists_some_of_many_and_says_how_many():
    error = errors.UnknownName("level", "zzz", [f"level{n}" for n in range(40)])
    assert str(error).endswith("'zzz'; there are 40, such as level0, level1, level2")


def test_an_unknown_name_says_so_when_it_knows_examples_only():
    error = errors.UnknownName("task", "zzz", ["a/0", "b/0"], examples=True)
    assert str(error) == "unknown task 'zzz'; valid are, for example, a/0, b/0"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_unknown_name_says_so_when_nothing_is_known():
    assert str(errors.UnknownName("reward", "x", [])) == "unknown reward 'x'; valid are none"


def test_an_unknown_name_may_be_of_any_kind():
    assert "unknown level ['a']" in str(errors.UnknownName("level", ["a"], ["abc"]))


def test_errors_survive_pickling():
    error = pickle.loads(pickle.dumps(errors.UnknownName("level", "x", ["xy", "z"])))
    assert (error.kind, error.name) == ("level", "x")
    assert "'xy'" in str(error)
    fault = pickle.loads(pickle.dumps(errors.WorkerFault("gone")))
    assert str(fault) == "gone"
    stop = pickle.loads(pickle.dumps(errors.PolicyStopped("full", reason="context")))
    assert (str(stop), stop.reason) == ("full", "context")
    assert not pickle.loads(pickle.dumps(errors.PolicyFault("x", retryable=False))).retryable


def test_a_fault_says_whether_a_second_try_makes_sense():
    assert errors.EnvFault("busy").retryable
    assert not errors.EnvFault("no such site", retryable=False).retryable
    assert not pickle.loads(pickle.dumps(errors.EnvFault("x", retryable=False))).retryable
