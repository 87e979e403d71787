"""The methods as operations of PyTorch: for devices other than the CPU, and for derivatives of derivatives.

They choose the same classes as the kernels, up to rounding at a threshold.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from shafer import _core


def _wide(tensor: Tensor) -> Tensor:
    """16-bit numbers are computed in float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _exact(tensor: Tensor) -> Tensor:
    """The type for sums: float64, where the device has it."""
    return tensor if tensor.device.type == "mps" else tensor.double()


def _masked(logits: Tensor, mask: Tensor | None) -> Tensor:
    return logits if mask is None else logits.masked_fill(~mask, -math.inf)


def _check(x: Tensor, dim: int) -> None:
    if bool((torch.isnan(x) | (x == math.inf)).any()):
        raise ValueError("a logit is NaN or inf, but must be finite, or -inf for a masked class")
    if bool((x.amax(dim) == -math.inf).any()):
        raise ValueError("every class of a row is masked, but at least one must be left")


def sparsify(
    logits: Tensor, method: str, dim: int, temperature: float, mask: Tensor | None
) -> Tensor:
    """The distributions."""
    method, name, value = _core.parse(method)
    _core.sparsify([0.0], "softmax", temperature=temperature)  # Checks the temperature.
    if not logits.dim() or logits.shape[dim] == 0:
        raise ValueError("a row of logits is empty, but must hold at least one element")
    x = _masked(_wide(logits), mask)
    if x.numel() == 0:
        return torch.empty_like(logits, memory_format=torch.contiguous_format)
    _check(x, dim)
    if name == "top-k" and value > x.shape[dim]:
        raise ValueError(f"k is {value:g}, but must not be greater than the number of classes")
    projection = _projection(name, value, x, dim, temperature)
    if projection is not None:
        p = _project(x, *projection, dim, temperature)
    else:
        keep = _keep(x, name, value, dim, temperature)
        p = torch.softmax((x / temperature).masked_fill(~keep, -math.inf), dim)
    return p.to(logits.dtype).contiguous()


def _keep(x: Tensor, name: str, value: float, dim: int, temperature: float) -> Tensor:
    """The classes of a method whose probabilities have the ratios of softmax."""
    alive = x > -math.inf
    largest = x.amax(dim, keepdim=True)
    if name == "softmax":
        return alive
    if name == "min-p":
        return _exact(x) >= _exact(largest) + temperature * math.log(value)
    # Zero at the largest: sums then keep their digits.
    below = _exact(x) - _exact(largest)
    if name == "evidential":
        for _ in range(int(value)):
            mean = below.masked_fill(~alive, 0).sum(dim, keepdim=True)
            mean = mean / alive.sum(dim, keepdim=True)
            kept = alive & ((below > mean) | (below == 0))
            if bool((kept == alive).all()):
                break
            alive = kept
        return alive
    if name == "top-n-sigma":
        count = alive.sum(dim, keepdim=True)
        mean = below.masked_fill(~alive, 0).sum(dim, keepdim=True) / count
        squares = (below - mean).square().masked_fill(~alive, 0).sum(dim, keepdim=True)
        return below >= -value * (squares / count).sqrt()
    if name == "min-evidence":
        count = alive.sum(dim, keepdim=True)
        weight = below - below.masked_fill(~alive, 0).sum(dim, keepdim=True) / count
        # A weight that is less by no more than the rounding of the mean counts as equal.
        rounding = 2.0**-50 * below.masked_fill(~alive, 0).abs().amax(dim, keepdim=True)
        return alive & ((weight >= temperature * value - rounding) | (below == 0))
    if name == "min-probability":
        return alive & ((torch.softmax(below / temperature, dim) >= value) | (below == 0))
    if name not in ("top-k", "top-p"):
        raise NotImplementedError(f"the method {name!r} is not known to the operations of PyTorch")
    # Stable: of equal logits, the first are kept.
    order = torch.sort(x, stable=True, dim=dim, descending=True).indices
    rank = torch.arange(x.shape[dim], device=x.device)
    rank = rank.reshape([-1 if d == dim % x.dim() else 1 for d in range(x.dim())])
    if name == "top-k":
        chosen = (rank < value).expand(x.shape)
    else:
        p = torch.softmax(below / temperature, dim).gather(dim, order)
        before = p.cumsum(dim) - p
        chosen = (before < value) | (rank == 0) if value < 1 else torch.ones_like(alive)
    return torch.zeros_like(alive).scatter(dim, order, chosen) & alive


def _projection(
    name: str, value: float, x: Tensor, dim: int, temperature: float
) -> tuple[float, Tensor | float] | None:
    """The exponent alpha and the gain of a projection onto the simplex; None for other methods."""
    if name == "sparsemax":
        return 2.0, 1.0
    if name == "sparsegen-lin":
        return 2.0, 1.0 / (1.0 - value)
    if name == "entmax":
        return None if value == 1.0 else (value, 1.0)
    if name != "sparsegen-hg":
        return None
    alive = x > -math.inf
    total = (_exact(x).masked_fill(~alive, 0) / temperature).sum(dim, keepdim=True).abs()
    # Of integers and a number of Python's, torch would make float32.
    offset = value * alive.sum(dim, keepdim=True).to(total.dtype)
    gain = (1.0 + offset) / (total + offset)
    if not bool((torch.isfinite(gain) & (gain > 0)).all()):
        raise ValueError(
            "the sum of the logits is 0 or too large, so that sparsegen-hg has no scale; choose a larger q"
        )
    return 2.0, gain


def _project(x: Tensor, alpha: float, gain: Tensor | float, dim: int, temperature: float) -> Tensor:
    y = (alpha - 1.0) * gain * ((_exact(x) - _exact(x.amax(dim, keepdim=True))) / temperature)
    exponent = 1.0 / (alpha - 1.0)
    # The sum of max(0, y - tau)^exponent decreases in tau, and the largest y is 0: bisection.
    low = torch.full_like(y.amax(dim, keepdim=True), -1.0)
    high = torch.zeros_like(low)
    for _ in range(60):
        tau = (low + high) / 2
        enough = (y - tau).clamp(min=0).pow(exponent).sum(dim, keepdim=True) >= 1
        low, high = torch.where(enough, tau, low), torch.where(enough, high, tau)
    if exponent == 1.0:
        # The piece is known: its solution is exact.
        support = y > low
        count = support.sum(dim, keepdim=True)
        low = (y.masked_fill(~support, 0).sum(dim, keepdim=True) - 1) / count
    p = (y - low).clamp(min=0).pow(exponent)
    return (p / p.sum(dim, keepdim=True)).to(x.dtype)


def vjp(
    logits: Tensor,
    probabilities: Tensor,
    upstream: Tensor,
    method: str,
    dim: int,
    temperature: float,
    mask: Tensor | None,
) -> Tensor:
    """The vector-Jacobian products, differentiable in the logits, the probabilities and `upstream`."""
    _, name, value = _core.parse(method)
    x, p, g = _masked(_wide(logits), mask), _wide(probabilities), _wide(upstream)
    projection = _projection(name, value, x, dim, temperature)
    if projection is None:
        gradient = p * (g - (p * g).sum(dim, keepdim=True)) / temperature
        return gradient.to(logits.dtype)
    alpha, gain = projection
    kept = p > 0
    # Peters, Niculae and Martins (2019): diag(s) - s s^T / sum(s) with s = p^(2 - alpha) on the support.
    s = torch.where(kept, torch.where(kept, p, 1.0).pow(2.0 - alpha), 0.0)
    mean = (s * g).sum(dim, keepdim=True) / s.sum(dim, keepdim=True)
    through = s * (g - mean)
    alive = x > -math.inf
    if name == "sparsegen-hg":
        finite = x.masked_fill(~alive, 0) / temperature
        total = finite.sum(dim, keepdim=True)
        offset = value * alive.sum(dim, keepdim=True).to(total.dtype)
        gain = (1.0 + offset) / (total.abs() + offset)
        slope = -gain / (total.abs() + offset) * total.sign()
        drift = (through * finite).sum(dim, keepdim=True) * slope
        gradient = ((gain * through + drift) / temperature).masked_fill(~alive, 0)
    else:
        gradient = gain * through / temperature
    return gradient.to(logits.dtype)
