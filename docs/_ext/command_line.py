"""``{command-line}``: the help of every command, from the commands themselves, so that the page cannot go stale."""

from __future__ import annotations

from typing import Any, ClassVar

import click
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from saddlesvm.cli.command import Command
from saddlesvm.cli.program import COMMANDS, program


def describe(name: str, command: click.Command) -> list[str]:
    """The section of a command, in Markdown: its help."""
    context = click.Context(command, info_name=f"saddlesvm {name}")
    return [
        f"## saddlesvm {name}",
        "",
        "```text",
        *command.get_help(context).splitlines(),
        "```",
        "",
    ]


class CommandLine(SphinxDirective):
    """A section for each command."""

    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        context = click.Context(program, info_name="saddlesvm")
        lines: list[str] = []
        for name in COMMANDS:
            command = program.get_command(context, name)
            assert isinstance(command, Command)
            lines += describe(name, command)
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
