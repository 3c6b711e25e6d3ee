"""Names of parameters that several kernel machines offer as options of the command line.

This file imports nothing: ``saddlesvm --help`` reads these names without the estimators.
"""

OF_KERNELS = ("kernel", "gamma", "degree", "coef0", "cache_size", "checkpoint")
OF_SVMS = (*OF_KERNELS, "shrinking", "libsvm")
OF_CLASSIFIERS = ("class_weight", *OF_SVMS, "probability", "break_ties", "decision_function_shape")
OVER_LANDMARKS = ("approximation", "exact_tol")
