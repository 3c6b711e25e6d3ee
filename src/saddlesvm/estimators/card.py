"""Model cards: the facts about a model that an auditor asks for, as Markdown or JSON."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from saddlesvm import __version__
from saddlesvm.estimators.changing import fingerprint
from saddlesvm.problem.losses import loss_name, make_loss

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
Card = dict[str, dict[str, Any]]


def card_of(model: Any, X: Any = None, y: Any = None) -> Card:
    """The facts, by section."""
    found = model.certificate_
    data = vars(model).get("_data")
    classes = getattr(model, "classes_", None)
    card: Card = {
        "model": {"kind": type(model).__name__, "features": int(model.n_features_in_), "outcome": str(model.outcome_)},
        "problem": {
            "loss": loss_name(make_loss(model.loss)),
            **model._strength(),
            "penalty": model.penalty,
            "intercept": model._intercept_kind(),
            **({} if classes is None else {"classes": classes.tolist(), "multi_class": model.multi_class}),
        },
        "certificate": {
            "objective at most": found.primal,
            "least possible at least": found.dual,
            "relative gap": found.relative_gap,
            "form": found.form,
        },
    }
    if data is not None:
        card["data"] = {"rows": int(data.X.shape[0]), "sha256": fingerprint(data)}
    if model.canonical is not None:
        digest = getattr(model, "digest_", None)
        card["canonical weights"] = {"bits": model.canonical, "digest": digest, "not proven": model.ambiguous_}
    if X is not None:
        card["accuracy"] = _accuracy(model, X, y)
    if len(getattr(model, "log_", ())):
        card["changes"] = {str(k + 1): json.loads(one) for k, one in enumerate(model.log_.tolist())}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        card["model"]["feature names"] = [str(one) for one in names]
    card["versions"] = {
        "saddlesvm": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }
    return card


def _accuracy(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The score of some rows and, of a classifier that can prove labels, the optimum's interval."""
    found = {"rows": len(np.asarray(y)), "score": float(model.score(X, y))}
    if getattr(model, "classes_", None) is None or model.multilabel_ or vars(model).get("_data") is None:
        return found
    right, proven = model.predict(X) == np.asarray(y), model.is_proven(X)
    low, high = float((right & proven).mean()), 1.0 - float((~right & proven).mean())
    return found | {"accuracy of the exact optimum, proven": [low, high]}


def markdown(card: Card, as_json: bool = False) -> str:
    """A card as Markdown: a heading and a table a section; or as JSON."""
    if as_json:
        return json.dumps(card, indent=2, default=str)
    lines = [f"# {card['model']['kind']}"]
    for section, facts in card.items():
        lines += ["", f"## {section.capitalize()}", "", "| fact | value |", "|---|---|"]
        lines += [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    text = json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
