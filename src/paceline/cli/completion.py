"""`paceline completion SHELL`: a script by which a shell completes verbs, options, studies and folders."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Json

# Where a shell looks for such scripts of a user's own.
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/paceline",
    "zsh": "~/.zfunc/_paceline",
    "fish": "~/.config/fish/completions/paceline.fish",
}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish.")],
    /,
    *,
    as_json: Json = False,
) -> None:
    """Print a script for a shell that completes verbs, options, studies and their folders.

    Kept in the file that is named on standard error, it is there in every new shell. It asks Paceline for names
    while they are typed, so it is printed anew only after an update of Paceline.

    For example:

        paceline completion bash > ~/.local/share/bash-completion/completions/paceline
        paceline completion zsh > ~/.zfunc/_paceline
        paceline completion fish --json
    """
    from paceline.cli.app import application

    console = Console.standard()
    script = application(console).generate_completion(prog_name="paceline", shell=shell)
    if as_json:
        console.json({"shell": shell, "place": PLACES[shell], "script": script})
        return
    console.result(script)
    here = f'eval "$(paceline completion {shell})"' if shell != "fish" else "paceline completion fish | source"
    console.say(f"Keep it as {PLACES[shell]}, or use it in this shell alone: {here}")
