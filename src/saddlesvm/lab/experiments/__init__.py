"""The published experiments, one a file; the name of each, its module and its class."""

HOMES = {
    "blood-cells": ("blood_cells", "BloodCells"),
    "vlfeat-sdca": ("vlfeat_sdca", "VLFeatSDCA"),
    "pegasos-fashion": ("pegasos_fashion", "PegasosFashion"),
    "dcd-tables": ("dcd_tables", "DCDTables"),
    "pegasos-bound": ("pegasos_bound", "PegasosBound"),
    "rates": ("rates", "Rates"),
}
