"""The theorems as functions: upper bounds on the distance of an algorithm from the optimum after T iterations.

Pegasos: theorem 1 and 2 of its paper with their corollaries, the sharper ones by Freedman's inequality, and those in
expectation; the general theorem for strongly convex objectives, and the inequality for martingales behind it. SDCA: its
theorems for Lipschitz and for smooth losses. :func:`iterations_for` inverts any of them.
"""

from saddlesvm.lab.bounds.pegasos import (
    average_iterate_bound,
    average_regret_bound,
    deterministic_regret_bound,
    expected_average_bound,
    expected_suffix_bound,
    freedman_average_bound,
    freedman_random_bound,
    gradient_constant,
    iterations_for,
    kakade_tewari_average_bound,
    kakade_tewari_random_bound,
    martingale_bound,
    pegasos_average_bound,
    random_iterate_bound,
    rate,
    strongly_convex_average_bound,
)
from saddlesvm.lab.bounds.sdca import (
    sdca_lipschitz_bound,
    sdca_lipschitz_dual_bound,
    sdca_lipschitz_iterations,
    sdca_smooth_bound,
    sdca_smooth_dual_bound,
    sdca_smooth_iterations,
)

__all__ = [
    "average_iterate_bound",
    "average_regret_bound",
    "deterministic_regret_bound",
    "expected_average_bound",
    "expected_suffix_bound",
    "freedman_average_bound",
    "freedman_random_bound",
    "gradient_constant",
    "iterations_for",
    "kakade_tewari_average_bound",
    "kakade_tewari_random_bound",
    "martingale_bound",
    "pegasos_average_bound",
    "random_iterate_bound",
    "rate",
    "sdca_lipschitz_bound",
    "sdca_lipschitz_dual_bound",
    "sdca_lipschitz_iterations",
    "sdca_smooth_bound",
    "sdca_smooth_dual_bound",
    "sdca_smooth_iterations",
    "strongly_convex_average_bound",
]
