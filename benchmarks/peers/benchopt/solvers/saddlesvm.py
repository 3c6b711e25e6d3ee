"""saddlesvm in benchopt's linear SVM benchmark: copy this file into the `solvers` folder of
https://github.com/benchopt/benchmark_linear_svm_binary_classif_no_intercept and run

    benchopt run . -s saddlesvm -s sklearn
"""
# ruff: noqa: RUF012

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from scipy import sparse

from saddlesvm import LinearSVC

LOOSEST = 0.9  # relative gap; benchopt begins its ladder of tolerances far above it
EPOCHS = 100_000  # at most, since benchopt ends its ladder at tolerances that rounding cannot reach


class Solver(BaseSolver):
    """Dual coordinate descent that Newton's method finishes; benchopt lowers the certified gap that it stops at."""

    name = "saddlesvm"
    install_cmd = "conda"
    requirements = ["pip::saddlesvm"]
    references = ["Hsieh et al., A dual coordinate descent method for large-scale linear SVM, ICML 2008"]
    parameters = {"solver": ["auto", "dcd"]}
    parameter_template = "solver={solver}"
    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(eps=1e-10, patience=5, strategy="tolerance")

    def set_objective(self, X, y, C):
        self.X = sparse.csr_matrix(X) if sparse.issparse(X) else X
        self.y = y
        self.model = LinearSVC(
            loss="hinge", C=C, solver=self.solver, fit_intercept=False, max_iter=EPOCHS, random_state=0
        )

    def warm_up(self):
        self.run_once()

    def run(self, tol):
        self.model.set_params(tol=min(tol, LOOSEST)).fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
