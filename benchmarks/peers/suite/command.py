"""The command line of ``run.py``: what is run, how long and how often."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import results
from grid import FIRST, LOSSES, QUICK, SOURCES, Cell, every_cell
from peers import PEERS
from task import Peer

from saddlesvm.data import DataError

SYNTHETIC = [name for name, source in SOURCES.items() if source.small]


@dataclass(frozen=True)
class Plan:
    """How long and how often.

    Attributes
    ----------
    cells : tuple of Cell
        In the order in which they are run.
    repeats : int
    time_limit : float
        Seconds for one fit of a peer at most.
    give_up : float
        A fit of a peer may take this many times what ours took to 1e-6 (half a second at least).
    contenders : float
        Peers within this factor of the best peer of a cell are run again.
    reference_limit, preparation : float
        Seconds for the fit that proves the bound; for reading and converting.
    quick : bool
        Few rows.
    """

    cells: tuple[Cell, ...]
    repeats: int = 3
    time_limit: float = 60.0
    give_up: float = float("inf")
    contenders: float = float("inf")
    reference_limit: float = 300.0
    preparation: float = 180.0
    quick: bool = False


PRESETS = {
    "full": Plan(every_cell()),
    "published": Plan(FIRST, time_limit=6.0, give_up=4.0, contenders=1.1, reference_limit=60.0, preparation=60.0),
    "quick": Plan(QUICK, repeats=1, time_limit=5.0, give_up=20.0, reference_limit=10.0, quick=True),
}


def parse_pythons(given: list[str]) -> dict[str, str]:
    """Interpreters of peers from NAME=PATH; a name stands for all peers that begin with it."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        meant = [peer for peer in PEERS if peer.startswith(name)] if name and equals else []
        if not meant or not os.access(path, os.X_OK):
            raise ValueError(f"--python {text}: give NAME=PATH with the name of a peer and its Python interpreter")
        found |= dict.fromkeys(meant, path)
    return found


def versions_in(python: str) -> dict[str, str]:
    """The solvers that an interpreter can run, and their versions."""
    listing = subprocess.run(
        [python, str(Path(__file__).resolve().parent / "peers.py")], capture_output=True, text=True, check=True
    )
    pairs = (line.split(" ", 1) for line in listing.stdout.splitlines())
    return {name: version for name, version in pairs if version.strip()}


def parse_solvers(options: argparse.Namespace) -> list[Peer]:
    """Our solvers, then the peers, by name; "all" stands for those that are installed, "none" for none.

    Raises
    ------
    ValueError
        A name is unknown, or its package is not installed.
    """
    pythons = options.pythons
    installed = {path: versions_in(path) for path in {sys.executable, *pythons.values()}}
    ready = [name for name in PEERS if name in installed[pythons.get(name, sys.executable)]]
    wanted = ["saddlesvm" if name == "auto" else f"saddlesvm-{name}" for name in options.solvers.split(",")]
    if options.peers == "all":
        wanted += [name for name in ready if among_all(PEERS[name], options)]
    elif options.peers != "none":
        wanted += options.peers.split(",")
    for name in wanted:
        if name not in PEERS:
            raise ValueError(f"unknown solver {name!r}: use {', '.join(PEERS)}")
        if name not in ready:
            raise ValueError(f"{name!r} needs the package {PEERS[name].distribution!r}, which is not installed")
    return [PEERS[name] for name in dict.fromkeys(wanted)]


def among_all(peer: Peer, options: argparse.Namespace) -> bool:
    """Whether "all" means this peer too."""
    return not (peer.ours or (peer.parallel_only and options.cores == "1"))


def listed(text: str, known: Any) -> list[str]:
    """Names from a list with commas, each of which must be known."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise ValueError(f"unknown name {name!r}: use {', '.join(known)}")
    return names


def options_of(arguments: list[str] | None, description: str) -> tuple[argparse.Namespace, list[Cell]]:
    """Read the command line; the options, and the cells in the order in which they are run."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, help="folder with fashion-mnist, a9a.bz2, rcv1-binary.bz2; without it synthetic data only")
    add("--out", type=Path, default=Path("results.parquet"), help="a .parquet or .csv file")
    add("--preset", choices=PRESETS, default="full", help="published: the cells that say most, in about 20 minutes")
    add("--quick", action="store_true", help="the same as --preset quick: few rows, four cells, a minute")
    add("--datasets", default=",".join(SOURCES))
    add("--losses", default=",".join(LOSSES))
    add("--strengths", help="values of C, with commas")
    add("--solvers", default="auto", help="ours: auto,dcd,sdca,pegasos,newton")
    add("--peers", default="all", help="names with commas, all (those that are installed) or none")
    add("--python", action="append", default=[], metavar="PEER=PATH", help="interpreter that has a peer")
    add("--cores", choices=("1", "all"), default="1")
    add("--repeats", type=int)
    add("--time-limit", type=float, help="seconds for one fit")
    add("--give-up", type=float, help="seconds for one fit of a peer, in units of what ours took to 1e-6")
    add("--max-total-minutes", type=float, help="stop after this time; the cells that say most come first")
    add("--resume", action="store_true", help="go on with what is in the file")
    options = parser.parse_args(arguments)
    options.command = command_words(options, parser)
    try:
        return options, settle(options)
    except (ValueError, DataError) as error:
        parser.error(str(error))


def command_words(options: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """The command that makes the results again, folders and interpreters by what they stand for."""
    words = ["run.py"]
    for name, value in vars(options).items():
        if value == parser.get_default(name) or name in ("resume", "max_total_minutes"):
            continue
        flag = f"--{name.replace('_', '-')}"
        if name == "python":
            words += [f"{flag} {text.partition('=')[0]}=PYTHON" for text in value]
        else:
            words.append(flag if value is True else f"{flag} {({'data': 'DIR', 'out': 'FILE'}).get(name, value)}")
    return " ".join(words)


def settle(options: argparse.Namespace) -> list[Cell]:
    """Check the options, fill in what a preset decides, and choose the cells."""
    results.ending_of(options.out)
    if options.out.exists() and not options.resume:
        raise ValueError(f"{options.out} exists: --resume goes on with it, or name another file")
    options.preset = "quick" if options.quick else options.preset
    given = {key: getattr(options, key) for key in ("repeats", "time_limit", "give_up")}
    options.plan = replace(PRESETS[options.preset], **{key: value for key, value in given.items() if value is not None})
    if options.plan.repeats < 1 or not options.plan.time_limit > 0.0:
        raise ValueError("--repeats and --time-limit must be positive")
    options.pythons = parse_pythons(options.python)
    options.solvers = parse_solvers(options)
    data = listed(options.datasets, SOURCES)
    losses = listed(options.losses, LOSSES)
    if options.data is None:
        data = [name for name in data if name in SYNTHETIC]
    strengths = [float(text) for text in options.strengths.split(",")] if options.strengths else None
    cells = [cell for cell in options.plan.cells if cell.data in data and cell.loss in losses]
    cells = [cell for cell in cells if strengths is None or cell.C in strengths]
    if not cells:
        raise ValueError(f"no cell is left: data sets that need no --data are {', '.join(SYNTHETIC)}")
    return cells
