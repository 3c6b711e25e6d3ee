"""Support vector machines trained fast to a certified optimum."""

from saddlesvm.audit import certify
from saddlesvm.certificate import Certificate
from saddlesvm.estimators import LinearSVC, LinearSVR
from saddlesvm.kernel_estimators import KernelSVC
from saddlesvm.outcome import NotCertifiedWarning, Outcome
from saddlesvm.paths import LinearSVCCV
from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos
from saddlesvm.solvers.kernel_pegasos import KernelPegasos
from saddlesvm.solvers.kernel_sdca import KernelSDCA

__version__ = "0.1.0"

__all__ = [
    "DCD",
    "SDCA",
    "Auto",
    "Certificate",
    "KernelPegasos",
    "KernelSDCA",
    "KernelSVC",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "Newton",
    "NotCertifiedWarning",
    "Outcome",
    "Pegasos",
    "certify",
]
