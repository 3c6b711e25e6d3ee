"""``{command-line}``: the options of every subcommand, from the parser itself, so that the page cannot go stale."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlesvm.cli.parser import examples_of, make_parser, sections_of


def subcommands(
    parser: argparse.ArgumentParser,
) -> dict[str, tuple[argparse.ArgumentParser, str]]:
    """Name, parser and help text of each subcommand."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            return {
                name: (choice, helps.get(name, ""))
                for name, choice in action.choices.items()
            }
    return {}


def spelled(action: argparse.Action) -> str:
    """How an option is written."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = ""
    if action.nargs != 0:
        value = " " + str(action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else
                                             action.dest.upper()))  # fmt: skip
    return ", ".join(action.option_strings) + value


class CommandLine(SphinxDirective):
    """A section for each subcommand: what it does, examples, and its options in groups."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for name, (parser, text) in subcommands(make_parser()).items():
            lines += [f"## saddlesvm {name}", "", text[:1].upper() + text[1:] + ".", ""]
            examples = [f"$ {line}" for line in examples_of(parser)]
            lines += ["```console", *examples, "```", ""]
            for title, actions in sections_of(parser).items():
                shown = [one for one in actions if one.dest not in ("help", "help_all")]
                lines += [f"**{title.capitalize()}**", ""] if shown else []
                for action in shown:
                    text = (action.help or "").replace("%%", "%").strip()
                    lines += [f"`{spelled(action)}`", f": {text}", ""]
        parent = nodes.section()
        parent.document = self.state.document
        self.state.nested_parse(
            StringList(lines, "command line"), 0, parent, match_titles=True
        )
        return parent.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("command-line", CommandLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
