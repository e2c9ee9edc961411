import math

import pytest
import torch

from corrvae.nn.closed_forms import QuadraticForm, draw_and_compare, kl_from_standard, log_cosh


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


def posteriors(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.cat([torch.randn(5, 3), torch.rand(5, 3) + 0.1], 1).to(dtype)


def form(dtype=torch.float64):
    torch.manual_seed(1)
    return QuadraticForm(*(torch.randn(shape, dtype=dtype) for shape in ((6,), (6,), ())))


PAIRS = torch.tensor([[0, 1], [1, 0], [4, 4], [2, 3]])


def test_kl_is_that_of_torch():
    mean, stddev = posteriors().chunk(2, 1)
    standard = torch.distributions.Normal(0.0, 1.0)
    expected = torch.distributions.kl_divergence(torch.distributions.Normal(mean, stddev), standard).sum(1)
    torch.testing.assert_close(kl_from_standard(posteriors()), expected)


def test_the_form_is_its_sum():
    rows, quadratic = posteriors(), form()
    x, y = rows[PAIRS[:, 0]], rows[PAIRS[:, 1]]
    expected = (quadratic.apart * (x - y) ** 2 + quadratic.together * (x + y) ** 2).sum(1) + quadratic.constant
    torch.testing.assert_close(quadratic(rows, PAIRS), expected)


def test_draws_and_forms_in_one_pass_are_what_they_are_apart():
    joint, noise, quadratic = posteriors().requires_grad_(), torch.randn(2, 3, dtype=torch.float64), form()
    z, kl, values = draw_and_compare(joint, noise, PAIRS, quadratic)
    torch.testing.assert_close(z, joint[:2, :3] + joint[:2, 3:] * noise)
    torch.testing.assert_close(kl, kl_from_standard(joint[:2]))
    torch.testing.assert_close(values, quadratic(joint, PAIRS))
    assert torch.autograd.gradcheck(lambda rows: draw_and_compare(rows, noise, PAIRS, quadratic), joint)
    # one output alone
    (gradient,) = torch.autograd.grad(draw_and_compare(joint, noise, PAIRS, quadratic)[0].sum(), joint)
    torch.testing.assert_close(gradient[:2, 3:], noise)
    assert not gradient[2:].any()


def test_a_learned_form_is_differentiated():
    joint, noise, fixed = posteriors(), torch.randn(2, 3, dtype=torch.float64), form()
    learned = [part.clone().requires_grad_() for part in (fixed.apart, fixed.together, fixed.constant)]
    assert torch.autograd.gradcheck(lambda *f: draw_and_compare(joint, noise, PAIRS, QuadraticForm(*f)), learned)
    found = draw_and_compare(joint, noise, PAIRS, QuadraticForm(*learned))
    for one, other in zip(found, draw_and_compare(joint, noise, PAIRS, fixed), strict=True):
        torch.testing.assert_close(one.detach(), other)


def test_forms_are_symmetric_to_the_bit():
    joint, noise, quadratic = posteriors(torch.float32), torch.randn(2, 3), form(torch.float32)
    assert quadratic(joint, PAIRS).equal(quadratic(joint, PAIRS.flip(1)))
    there, back = (draw_and_compare(joint, noise, pairs, quadratic)[2] for pairs in (PAIRS, PAIRS.flip(1).contiguous()))
    assert there.equal(back)


def test_what_is_not_finite_is_not_hidden():
    joint = posteriors()
    joint[4, 0] = float("nan")
    assert draw_and_compare(joint, torch.zeros(1, 3).double(), PAIRS, form())[2].isnan().tolist() == [0, 0, 1, 0]
    joint = torch.tensor([[float("inf"), 1.0], [0.0, float("nan")]])
    nothing = torch.empty((0, 2), dtype=torch.int64)
    quadratic = QuadraticForm(torch.ones(2), torch.ones(2), torch.tensor(0.0))
    for kl in (kl_from_standard(joint), draw_and_compare(joint, torch.zeros(2, 1), nothing, quadratic)[1]):
        assert kl[0].isinf()
        assert kl[1].isnan()
