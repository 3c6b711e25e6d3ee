"""Support vector machines trained fast to a certified optimum."""

from saddlesvm.audit import certify
from saddlesvm.certificate import Certificate
from saddlesvm.estimators import LinearSVC, LinearSVR
from saddlesvm.outcome import NotCertifiedWarning, Outcome
from saddlesvm.solvers import DCD, SDCA, Pegasos

__version__ = "0.1.0"

__all__ = [
    "DCD",
    "SDCA",
    "Certificate",
    "LinearSVC",
    "LinearSVR",
    "NotCertifiedWarning",
    "Outcome",
    "Pegasos",
    "certify",
]
