"""The attack on this package that stays in the project: ``python -m tests.attack --hours 1`` from its root.

A campaign (:data:`tests.attack.campaigns.CAMPAIGNS`) is a name and a function of a number and a seed: each number is
one hostile case, made again whenever the number is given again. The tests beside this file are a short run of each.
"""
