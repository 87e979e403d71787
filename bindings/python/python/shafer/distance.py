"""Distances between distributions over the same classes, of two rows or of arrays of rows.

>>> from shafer import distance
>>> distance.total_variation([1.0, 0.0], [0.5, 0.5])
0.5
"""

from shafer._core import bhattacharyya, jensen_shannon, total_variation, wasserstein_1

__all__ = ["bhattacharyya", "jensen_shannon", "total_variation", "wasserstein_1"]
