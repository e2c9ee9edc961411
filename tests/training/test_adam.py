import pytest
import torch
from torch import nn

from corrvae.training.adam import Adam


def parameters():
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape)) for shape in ((3, 4), (5,), ())]


def climb(ours, theirs, steps, generator):
    for _ in range(steps):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape, generator=generator)
            other.grad = one.grad.clone()
        yield


def test_steps_are_those_of_torch():
    ours, theirs = parameters(), parameters()
    adam, reference = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01, maximize=True)
    for _ in climb(ours, theirs, 20, torch.Generator().manual_seed(1)):
        adam.step()
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_steps_are_counted_whatever_the_callers_default_type():
    torch.set_default_dtype(torch.bfloat16)  # which has no number between 256 and 258
    try:
        adam = Adam([nn.Parameter(torch.zeros(1, dtype=torch.float32))], 0.01)
    finally:
        torch.set_default_dtype(torch.float32)
    for _ in range(300):
        adam.parameters[0].grad = torch.ones(1)
        adam.step()
    assert adam.tensors()["steps"] == 300


def test_a_parameter_without_gradient_stays():
    ours = parameters()
    before = [parameter.detach().clone() for parameter in ours]
    adam = Adam(ours, 0.01)
    ours[0].grad = torch.ones(3, 4)
    adam.step()
    assert not ours[0].equal(before[0])
    assert ours[1].equal(before[1])
    adam.forget_gradients()
    assert ours[0].grad is None


def test_a_restored_state_goes_on_to_the_bit():
    ours, theirs = parameters(), parameters()
    one, generator = Adam(ours, 0.01), torch.Generator().manual_seed(1)
    for _ in climb(ours, theirs, 5, generator):
        one.step()
    with torch.no_grad():
        for mine, yours in zip(ours, theirs, strict=True):
            yours.copy_(mine)
    other = Adam(theirs, 0.01)
    other.restore({name: tensor.clone() for name, tensor in one.tensors().items()})
    for _ in climb(ours, theirs, 5, generator):
        one.step()
        other.step()
    assert all(mine.equal(yours) for mine, yours in zip(ours, theirs, strict=True))


def test_a_foreign_state_is_refused():
    adam = Adam(parameters(), 0.01)
    state = adam.tensors()
    with pytest.raises(ValueError, match=r"0\.mean is missing or has another shape"):
        adam.restore({**state, "0.mean": torch.zeros(2)})
    del state["1.square"]
    with pytest.raises(ValueError, match=r"1\.square"):
        adam.restore(state)
