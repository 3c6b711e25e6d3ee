"""A user's program as a type checker sees it: ``# error: CODE`` follows the lines that it must refuse.

Nothing runs it; ``tests/laws/test_types.py`` checks it.
"""

from typing import assert_type

import numpy as np

import saddlesvm
from saddlesvm import SVC, SVR, Certificate, LinearSVC, LinearSVR, NuSVC, OneClassSVM, Outcome, Pegasos
from saddlesvm.data import load_bundled
from saddlesvm.data.data_table import LabelledTable
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.losses import Hinge, Huber

notes = load_bundled("banknote")
assert_type(notes, LabelledTable)
assert_type(notes.y, np.ndarray)
X, y = notes.X, notes.y

# Fits keep the class, and fitted attributes their types.
model = LinearSVC(loss="hinge", C=2.0, solver=Pegasos(batch_size=2), class_weight="balanced").fit(X, y)
assert_type(model, LinearSVC)
assert_type(model.predict(X), np.ndarray)
assert_type(model.coef_, np.ndarray)
assert_type(model.certificate_, Certificate)
assert_type(model.certificate_.relative_gap, float)
assert_type(model.outcome_, Outcome)
assert_type(model.n_iter_, int)
assert_type(LinearSVR(loss=Huber(delta=2.0), C="auto").fit(X, y), LinearSVR)
assert_type(SVC(kernel="rbf", gamma="scale").fit(X, y), SVC)
assert_type(NuSVC(nu=0.1).fit(X, y).decision_function(X), np.ndarray)
assert_type(OneClassSVM(kernel=np.dot).fit(X), OneClassSVM)
LinearSVC(loss=Hinge(), multi_class="ovo", intercept="free", penalty="l2", dual=False)
SVR(kernel="poly", degree=2, gamma=0.5)

# Paths.
assert_type(LinearSVC().path(X, y, C=(0.1, 1.0)), CertifiedPath)
assert_type(LinearSVR().path(X, y, gap=0.1), CertifiedPath)
assert_type(LinearSVR(loss="squared").path(X, y, lam=(0.1, 1.0)), CertifiedPath)

# Words that no option takes, options that there are not, and names that there are not.
LinearSVC(loss="hingee")  # error: arg-type
LinearSVR(loss="hinge")  # error: arg-type
LinearSVC(penalty="l3")  # error: arg-type
LinearSVC(multi_class="ovp")  # error: arg-type
LinearSVC(intercept="yes")  # error: arg-type
LinearSVC(C="automatic")  # error: arg-type
LinearSVC(solver="fast")  # error: arg-type
LinearSVC(class_weight="even")  # error: arg-type
LinearSVC(losss="hinge")  # error: call-arg
SVC(losss="hinge")  # error: call-arg
SVC(kernel="rbff")  # error: arg-type
SVC(gamma="scaled")  # error: arg-type
model.fit(X, y, weights=y)  # error: call-arg
model.predict()  # error: call-arg
LinearSVC().path(X, y, C=1.0)  # error: arg-type
saddlesvm.LinerSVC()  # error: attr-defined
