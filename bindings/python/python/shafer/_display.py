"""What objects show in Jupyter: the bars and the table of ``shafer explain``."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

# The classes shown, the most probable first.
_ROWS = 20


def _cell(text: str) -> str:
    return f'<td style="text-align: right">{escape(text)}</td>'


def _effective(p: Any) -> float:
    """The exponential of the entropy."""
    positive = p[p > 0]
    return math.exp(-float((positive * np.log(positive)).sum()))


def html(belief: Any) -> str:
    """The table of a `Belief`."""
    evidence = belief.evidence
    weight = evidence.positive - evidence.negative
    softmax = belief.plausibility_transform()
    supported = np.zeros(len(weight), dtype=bool)
    supported[evidence.support()] = True
    kept = np.where(supported, softmax, 0.0)
    total = kept.sum()
    # Evidence that was not made of logits can support no class.
    probability = kept / total if total > 0 else kept
    mass, contour = belief.singletons(), belief.contour()
    order = np.lexsort((np.arange(len(weight)), -weight))
    rows = []
    for k in order[:_ROWS]:
        bar = f'<div style="width: {100 * probability[k]:.1f}px; height: 0.8em; background: #4c78a8"></div>'
        last = (
            _cell(f"{probability[k]:.4f}") + f"<td>{bar}</td>"
            if supported[k]
            else _cell("dropped") + "<td></td>"
        )
        numbers = [str(k), f"{weight[k]:+.3f}"]
        numbers += [f"{value[k]:.4f}" for value in (mass, contour, softmax)]
        rows.append(f"<tr>{''.join(map(_cell, numbers))}{last}</tr>")
    left = len(weight) - len(rows)
    if left > 0:
        rows.append(f'<tr><td colspan="7">and {left} more classes of smaller weight</td></tr>')
    head = "".join(
        f"<th>{name}</th>"
        for name in ("class", "weight", "belief", "plausibility", "softmax", "probability", "")
    )
    count = int(supported.sum())
    summary = [
        f"evidential keeps {count} of {len(weight)} classes",
        f"softmax mass kept {total:.4f}, dropped {max(0.0, 1 - total):.4f}",
        f"ignorance {belief.ignorance():.4f} (mass on no class in particular)",
        f"conflict between the evidence for different classes {belief.internal_conflict():.4f}",
    ]
    if total > 0:
        summary.insert(
            1, f"effective number of classes {_effective(probability):.2f}, of softmax {_effective(softmax):.2f}"
        )
    notes = "<br>".join(map(escape, summary))
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{notes}</div>"
