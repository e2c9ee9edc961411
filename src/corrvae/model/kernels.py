"""Kernels of belief propagation on a forest, in the notation of `corrvae.model.propagation`.

Rows are vertices in the order of the forest, parents before children; `parents` are places in this order.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def combine_upwards(a, b, parents, tau):
    """Add to each vertex's evidence what its children know, in place; children come after their parents."""
    for k in range(len(parents) - 1, -1, -1):
        p = parents[k]
        if p < 0:
            continue
        for c in range(tau.size):
            t = tau[c]
            D = 1.0 + (1.0 - t) * (1.0 + t) * a[k, c]
            a[p, c] += t * t * a[k, c] / D
            b[p, c] += t * b[k, c] / D


@njit(cache=True, nogil=True)
def spread_downwards(a, b, parents, tau):
    """Return means, variances and KL given the parent, from evidence that was combined upwards."""
    mean, variance, kl = np.empty_like(a), np.empty_like(a), np.empty(len(parents))
    for k in range(len(parents)):
        p = parents[k]
        total = 0.0
        for c in range(tau.size):
            t = tau[c] if p >= 0 else 0.0
            m, v = (mean[p, c], variance[p, c]) if p >= 0 else (0.0, 0.0)
            s = (1.0 - t) * (1.0 + t)
            i = 1.0 / (1.0 + s * a[k, c])
            mean[k, c] = (s * b[k, c] + t * m) * i
            variance[k, c] = s * i + t * t * v * i * i
            u = b[k, c] - t * a[k, c] * m
            far = u * u + t * t * a[k, c] * a[k, c] * v
            total -= np.log(i) + s * a[k, c] * i - s * far * i * i
        kl[k] = 0.5 * total
    return mean, variance, kl


@njit(cache=True, nogil=True)
def differentiate(a, b, mean, variance, parents, tau, of_mean, of_variance, of_kl):
    """Return the gradients of precision, information and tau; `of_mean` and `of_variance` are overwritten."""
    of_a, of_b, of_tau = np.empty_like(a), np.empty_like(a), np.zeros(tau.size)
    for k in range(len(parents) - 1, -1, -1):
        p = parents[k]
        for c in range(tau.size):
            t = tau[c] if p >= 0 else 0.0
            m, v = (mean[p, c], variance[p, c]) if p >= 0 else (0.0, 0.0)
            s = (1.0 - t) * (1.0 + t)
            x, y, gm, gv, gk = a[k, c], b[k, c], of_mean[k, c], of_variance[k, c], of_kl[k]
            i = 1.0 / (1.0 + s * x)
            u = y - t * x * m
            far = u * u + t * t * x * x * v
            of_b[k, c] = s * i * (gm + gk * u * i)
            of_a[k, c] = -s * i * (gm * mean[k, c] + gv * i * (s + 2.0 * t * t * v * i))
            of_a[k, c] += gk * s * i * i * (0.5 * s * x + t * (t * x * v - u * m) - s * far * i)
            if p >= 0:
                of_mean[p, c] += t * i * (gm - gk * s * u * x * i)
                of_variance[p, c] += t * t * i * i * (gv + 0.5 * gk * s * x * x)
                by_t = gm * m * i + 2.0 * gv * t * v * i * i + gk * s * x * (t * x * v - u * m) * i * i
                by_s = gm * (y - mean[k, c] * x) * i + gv * i * i * (1.0 - 2.0 * t * t * v * x * i)
                by_s += 0.5 * gk * i * i * (s * x * x + far * (1.0 - 2.0 * s * x * i))
                of_tau[c] += by_t - 2.0 * t * by_s
    for k in range(len(parents)):
        p = parents[k]
        if p < 0:
            continue
        for c in range(tau.size):
            t, x, y = tau[c], a[k, c], b[k, c]
            s = (1.0 - t) * (1.0 + t)
            i = 1.0 / (1.0 + s * x)
            ga, gb = of_a[p, c], of_b[p, c]
            of_a[k, c] += t * i * i * (ga * t - gb * y * s)
            of_b[k, c] += gb * t * i
            by_t = 2.0 * ga * t * x * i + gb * y * i
            by_s = -t * x * i * i * (ga * t * x + gb * y)
            of_tau[c] += by_t - 2.0 * t * by_s
    return of_a, of_b, of_tau


@njit(cache=True, nogil=True)
def pair_covariances(a, variance, parents, tau, pairs):
    """Return the covariance of pairs of places: from each end up to where they meet, times the variance there.

    Parents come first, so of two places the later one is never above the other.
    """
    covariance = np.zeros((len(pairs), tau.size))
    for k in range(len(pairs)):
        i, j = pairs[k]
        covariance[k] = 1.0
        while i != j:
            if i < j:
                i, j = j, i
            if parents[i] < 0:
                break
            for c in range(tau.size):
                covariance[k, c] *= tau[c] / (1.0 + (1.0 - tau[c]) * (1.0 + tau[c]) * a[i, c])
            i = parents[i]
        if i == j:
            covariance[k] *= variance[i]
        else:
            covariance[k] = 0.0
    return covariance


@njit(cache=True, nogil=True)
def descend(z, a, b, parents, tau):
    """Turn standard normal noise into a draw from the posterior, in place: each vertex given its parent."""
    for k in range(len(parents)):
        p = parents[k]
        for c in range(tau.size):
            t, above = (tau[c], z[p, c]) if p >= 0 else (0.0, 0.0)
            s = (1.0 - t) * (1.0 + t)
            D = 1.0 + s * a[k, c]
            z[k, c] = (s * b[k, c] + t * above) / D + np.sqrt(s / D) * z[k, c]


@njit(cache=True, nogil=True)
def log_densities(z, a, b, parents, tau):
    """Return the log-density of each of some points of all vertices."""
    found = np.zeros(len(z))
    for n in range(len(z)):
        for k in range(len(parents)):
            p = parents[k]
            for c in range(tau.size):
                t, above = (tau[c], z[n, p, c]) if p >= 0 else (0.0, 0.0)
                s = (1.0 - t) * (1.0 + t)
                D = 1.0 + s * a[k, c]
                rest = z[n, k, c] - (s * b[k, c] + t * above) / D
                found[n] -= 0.5 * (rest * rest * D / s + np.log(2.0 * np.pi * s / D))
    return found
