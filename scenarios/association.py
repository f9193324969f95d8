"""Which observed fields give a sensitive group away, measured on the covariates alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PROXY_THRESHOLD = 0.1  # Cramér's V, no unit; the usual border between no and a small association (Cohen 1988, w = .1)


def cramers_v(first: NDArray[np.int32], second: NDArray[np.int32]) -> float:
    """Association of two codes, from 0 (independent) to 1 (one follows from the other).

    Bias-corrected Cramér's V. Source: Bergsma (2013), "A bias-correction for Cramér's V and Tschuprow's T":
    phi2' = max(0, chi2/n - (r-1)(c-1)/(n-1)), r' = r - (r-1)^2/(n-1), c' alike, V = sqrt(phi2' / min(r'-1, c'-1)).
    The correction matters here: without it every field with many levels looks associated with everything.

    Args:
        first: [N] i32 codes, from 0.
        second: [N] i32 codes, from 0.

    Returns:
        V; 0 where one of the two does not vary.
    """
    n = len(first)
    counts = np.zeros((int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1))
    np.add.at(counts, (first, second), 1.0)
    counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
    rows, columns = counts.shape
    if rows < 2 or columns < 2:
        return 0.0
    expected = np.outer(counts.sum(1), counts.sum(0)) / n
    phi2 = float(((counts - expected) ** 2 / expected).sum()) / n
    phi2 = max(0.0, phi2 - (rows - 1) * (columns - 1) / (n - 1))
    smaller = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1.0
    return float(np.sqrt(min(phi2 / smaller, 1.0))) if smaller > 0.0 else 0.0
