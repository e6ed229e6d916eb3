import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space

from agentgym_envs.spaces import UnicodeText, is_utf8, to_utf8


def test_any_text_up_to_the_length_is_contained():
    space = UnicodeText(5)
    for text in ("", "abc", "naïve", "日本語", "😀😀😀😀😀", "\x00\n\r\t", "12345"):
        assert text in space
    for other in ("123456", b"abc", 5, None, ["a"], np.array("a"), "\ud800"):
        assert other not in space


def test_samples_are_contained_and_depend_on_the_seed_alone():
    space = UnicodeText(10, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert all(sample in space for sample in samples)
    assert len(set(samples)) > 25
    again = UnicodeText(10, seed=3)
    assert [again.sample() for _ in range(50)] == samples


def test_masks_are_refused():
    with pytest.raises(ValueError, match="neither mask nor probability"):
        UnicodeText().sample(mask=np.ones(3))


def test_spaces_are_equal_if_their_length_is():
    assert UnicodeText(5) == UnicodeText(5, seed=1)
    assert hash(UnicodeText(5)) == hash(UnicodeText(5))
    assert UnicodeText(5) != UnicodeText(6)
    assert UnicodeText(5) != "UnicodeText(5)"
    assert repr(UnicodeText(5)) == "UnicodeText(5)"


def test_a_length_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        UnicodeText(0)


def test_spaces_are_cheap_to_pickle_and_copy():
    space = UnicodeText()
    assert len(pickle.dumps(space)) < 2_000
    assert pickle.loads(pickle.dumps(space)) == space
    assert copy.deepcopy(space) == space


def test_texts_are_json_already():
    space = UnicodeText()
    assert space.from_jsonable(space.to_jsonable(("a", "ü"))) == ["a", "ü"]
    assert not space.is_np_flattenable


def test_a_batch_of_texts_is_a_tuple():
    batch = batch_space(UnicodeText(), 3)
    assert ("a", "b", "") in batch
    assert ("a", "b") not in batch


def test_each_surrogate_becomes_one_replacement_character():
    assert to_utf8("a\ud800b\udc00\udfff") == "a\ufffdb\ufffd\ufffd"
    assert not is_utf8("a\ud800")
    text = "kept as it is 😀"
    assert to_utf8(text) is text
