import math

import pytest
import torch

from corrvae.nn.closed_forms import _KLFromStandard, _Quadratic, kl_from_standard, log_cosh, quadratic


@pytest.mark.parametrize("a", [0.0, 1e-6, 1e-3, 0.1, 0.999, 1.0, 1.001, 3.0, 20.0, 500.0])
def test_log_cosh_is_accurate_everywhere(a):
    # cosh a - 1 = 2 sinh^2(a / 2) keeps its digits near 0
    exact = math.log1p(2 * math.sinh(a / 2) ** 2) if a < 300 else a - math.log(2)
    found = log_cosh(torch.tensor([a, -a], dtype=torch.float32))
    assert found.tolist() == pytest.approx([exact, exact], rel=5e-7, abs=0)


def test_log_cosh_has_tanh_for_derivative():
    a = torch.tensor([-500.0, -1.0, -1e-4, 0.0, 0.5, 2.0, 500.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(log_cosh(a).sum(), a)
    torch.testing.assert_close(gradient, a.detach().tanh())
    assert torch.autograd.gradcheck(log_cosh, a[1:-1].detach().requires_grad_())


def test_kl_and_its_gradient():
    torch.manual_seed(0)
    joint = torch.cat([torch.randn(5, 3), torch.rand(5, 3) + 0.1], 1).double().requires_grad_()
    assert torch.autograd.gradcheck(_KLFromStandard.apply, joint)
    mean, stddev = joint.chunk(2, 1)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, stddev), torch.distributions.Normal(0.0, 1.0)
    ).sum(1)
    torch.testing.assert_close(kl_from_standard(joint), expected)


def pieces(dtype=torch.float64):
    torch.manual_seed(0)
    first, second = torch.tensor([0, 1, 4, 2]), torch.tensor([1, 0, 4, 3])
    return torch.randn(5, 6, dtype=dtype), first, second, torch.randn(6, dtype=dtype), torch.randn(6, dtype=dtype)


def test_quadratic_and_its_gradient():
    rows, first, second, apart, together = pieces()
    x, y = rows[first], rows[second]
    expected = (apart * (x - y) ** 2 + together * (x + y) ** 2).sum(1)
    torch.testing.assert_close(quadratic(rows, first, second, apart, together), expected)
    rows.requires_grad_()
    assert torch.autograd.gradcheck(lambda r: _Quadratic.apply(r, first, second, apart, together), rows)


def test_quadratic_with_learned_factors_differentiates_them():
    rows, first, second, apart, together = (
        part.requires_grad_() if part.is_floating_point() else part for part in pieces()
    )
    assert torch.autograd.gradcheck(lambda r, a, t: quadratic(r, first, second, a, t), (rows, apart, together))
    fixed = quadratic(rows, first, second, apart.detach(), together.detach())
    torch.testing.assert_close(quadratic(rows, first, second, apart, together), fixed)


def test_quadratic_is_symmetric_to_the_bit():
    rows, first, second, apart, together = pieces(torch.float32)
    assert quadratic(rows, first, second, apart, together).equal(quadratic(rows, second, first, apart, together))


def test_what_is_not_finite_is_not_hidden():
    rows, first, second, apart, together = pieces()
    rows[4, 0] = float("nan")
    assert quadratic(rows, first, second, apart, together).isnan().tolist() == [False, False, True, False]
    assert kl_from_standard(torch.tensor([[float("inf"), 1.0]])).isinf().all()
    assert kl_from_standard(torch.tensor([[0.0, float("nan")]])).isnan().all()
