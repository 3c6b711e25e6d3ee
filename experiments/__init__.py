"""The published experiments, one script for each document; ``python -m experiments NAME`` runs one.

They use the public names of saddlesvm and of its lab only. ``docs/experiments/index.md`` says which
table or figure of which document each of them makes.
"""

# The name of each experiment, its module, and its class.
HOMES = {
    "blood-cells": ("blood_cells", "BloodCells"),
    "vlfeat-sdca": ("vlfeat_sdca", "VLFeatSDCA"),
    "pegasos-fashion": ("pegasos_fashion", "PegasosFashion"),
    "dcd-tables": ("dcd_tables", "DCDTables"),
    "pegasos-bound": ("pegasos_bound", "PegasosBound"),
}
