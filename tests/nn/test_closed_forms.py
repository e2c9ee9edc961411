import math

import pytest
import torch

from corrvae.nn.closed_forms import (
    _DrawWithKL,
    _KLFromStandard,
    _Quadratic,
    draw_with_kl,
    kl_from_standard,
    log_cosh,
    quadratic,
)


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


def test_draws_and_their_gradients():
    torch.manual_seed(0)
    joint = torch.cat([torch.randn(5, 3), torch.rand(5, 3) + 0.1], 1).double().requires_grad_()
    noise = torch.randn(2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda j: _DrawWithKL.apply(j, noise), joint)
    z, kl = draw_with_kl(joint, noise)
    torch.testing.assert_close(z, joint[:2, :3] + joint[:2, 3:] * noise)
    torch.testing.assert_close(kl, kl_from_standard(joint[:2]))
    # either output alone
    (gradient,) = torch.autograd.grad(draw_with_kl(joint, noise)[0].sum(), joint)
    torch.testing.assert_close(gradient[:2, 3:], noise)
    assert not gradient[2:].any()


def pieces(dtype=torch.float64):
    torch.manual_seed(0)
    first, second = torch.tensor([0, 1, 4, 2]), torch.tensor([1, 0, 4, 3])
    apart, together, constant = torch.randn(6, dtype=dtype), torch.randn(6, dtype=dtype), torch.tensor(0.3, dtype=dtype)
    return torch.randn(5, 6, dtype=dtype), first, second, apart, together, constant


def test_quadratic_and_its_gradient():
    rows, first, second, apart, together, constant = pieces()
    x, y = rows[first], rows[second]
    expected = (apart * (x - y) ** 2 + together * (x + y) ** 2).sum(1) + constant
    torch.testing.assert_close(quadratic(rows, first, second, apart, together, constant), expected)
    rows.requires_grad_()
    assert torch.autograd.gradcheck(lambda r: _Quadratic.apply(r, first, second, apart, together, constant), rows)


def test_quadratic_with_learned_factors_differentiates_them():
    rows, first, second, *factors = pieces()
    learned = [factor.clone().requires_grad_() for factor in factors]
    assert torch.autograd.gradcheck(lambda *f: quadratic(rows, first, second, *f), learned)
    fixed = quadratic(rows, first, second, *factors)
    torch.testing.assert_close(quadratic(rows, first, second, *learned).detach(), fixed)


def test_quadratic_is_symmetric_to_the_bit():
    rows, first, second, *factors = pieces(torch.float32)
    assert quadratic(rows, first, second, *factors).equal(quadratic(rows, second, first, *factors))


def test_what_is_not_finite_is_not_hidden():
    rows, first, second, *factors = pieces()
    rows[4, 0] = float("nan")
    assert quadratic(rows, first, second, *factors).isnan().tolist() == [False, False, True, False]
    assert kl_from_standard(torch.tensor([[float("inf"), 1.0]])).isinf().all()
    assert kl_from_standard(torch.tensor([[0.0, float("nan")]])).isnan().all()
