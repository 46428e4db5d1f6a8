"""`paceline completion SHELL`: a shell script that completes verbs, options, studies and folders."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Json

# Where each shell looks for completion scripts of a user.
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
    """Print a shell script that completes verbs, options, studies and their folders.

    Save it to the file named on standard error, and every new shell uses it. Names are looked up while you type, so
    print the script again only after an update of Paceline.

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
    console.say(f"Save it as {PLACES[shell]}, or use it only in this shell: {here}")
