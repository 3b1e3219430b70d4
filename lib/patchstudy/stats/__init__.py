"""Estimates and tests on plain arrays; this floor knows nothing of networks."""

from patchstudy.rounding import Bounds, difference, printed, quotient, within
from patchstudy.stats.blocked import blocked_permutation_p, smallest_blocked_p
from patchstudy.stats.estimates import (
    Effect,
    Estimate,
    fieller,
    paired,
    resolution_floor,
    welch,
)
from patchstudy.stats.multiplicity import benjamini_hochberg, holm
from patchstudy.stats.nested import (
    VarianceComponents,
    optimal_repetitions,
    variance_components,
)
from patchstudy.stats.order import Slope, Trend, effective_size, lag1, slope, trend
from patchstudy.stats.power import detectable_change, needed_n
from patchstudy.stats.proportions import (
    dispersion,
    fisher_p,
    newcombe,
    none_in,
    poisson_fits,
    poisson_ratio,
    poisson_ratio_p,
    wilson,
)
from patchstudy.stats.ranks import (
    PermutationTest,
    Superiority,
    hodges_lehmann,
    mean_difference_permutation_p,
    permutation_p,
    sign_flip_p,
    smallest_permutation_p,
    smallest_sign_flip_p,
    superiority,
    walsh,
)
from patchstudy.stats.shape import (
    Gap,
    gap,
    gesd_outliers,
    modified_z_outliers,
    spread_ratio_p,
)

__all__ = [
    "Bounds",
    "Effect",
    "Estimate",
    "Gap",
    "PermutationTest",
    "Slope",
    "Superiority",
    "Trend",
    "VarianceComponents",
    "benjamini_hochberg",
    "blocked_permutation_p",
    "detectable_change",
    "difference",
    "dispersion",
    "effective_size",
    "fieller",
    "fisher_p",
    "gap",
    "gesd_outliers",
    "hodges_lehmann",
    "holm",
    "lag1",
    "mean_difference_permutation_p",
    "modified_z_outliers",
    "needed_n",
    "newcombe",
    "none_in",
    "optimal_repetitions",
    "paired",
    "permutation_p",
    "poisson_fits",
    "poisson_ratio",
    "poisson_ratio_p",
    "printed",
    "quotient",
    "resolution_floor",
    "sign_flip_p",
    "slope",
    "smallest_blocked_p",
    "smallest_permutation_p",
    "smallest_sign_flip_p",
    "spread_ratio_p",
    "superiority",
    "trend",
    "variance_components",
    "walsh",
    "welch",
    "wilson",
    "within",
]
