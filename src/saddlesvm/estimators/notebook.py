"""The representation of an estimator in notebooks: scikit-learn's diagram, and below it what the fit proved."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Outcome

STYLE = "font: 0.85em/1.6 system-ui, sans-serif; margin: 0.4em 0; padding: 0.3em 0.7em; border-left: 0.25em solid"
PROVEN, OPEN = "#2e8b57", "#c77700"  # colours of the edge, legible on light and dark


class ShownWithCertificate:
    """The part of an estimator that adds the certificate to its HTML representation."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + proof_of(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def proof_of(model: Any) -> str:
    """A line of HTML with outcome, gap, objective and effort of a fitted model; empty for one that is not fitted."""
    certificate, outcome = getattr(model, "certificate_", None), getattr(model, "outcome_", None)
    if certificate is None or outcome is None:
        return ""
    epochs = int(np.max(model.n_iter_))
    asked = f" ({model.tol:.3g} asked)" if isinstance(model.tol, (int, float)) else ""
    facts = [
        f"relative gap {certificate.relative_gap:.3g}{asked}",
        f"objective between {certificate.dual:.6g} and {certificate.primal:.6g}",
        f"{epochs:,} epochs" if epochs != 1 else "1 epoch",
        f"{model.seconds_solving_ + model.seconds_certifying_:.3g} s",
    ]
    if hasattr(model, "C_"):
        facts.append(f"C = {model.C_:.4g}")
    colour = PROVEN if outcome is Outcome.CERTIFIED else OPEN
    return (
        f'<div style="{STYLE} {colour}" role="note"><b>{escape(str(outcome).replace("_", " "))}</b>: '
        f"{escape('; '.join(facts))}</div>"
    )
