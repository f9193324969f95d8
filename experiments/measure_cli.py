"""Commands that measure the worlds themselves: `habitus scores`, `habitus headroom`, `habitus bench`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import rich.console
import typer

from .cli_errors import clear_errors, split
from .errors import ExperimentError

DEFAULT_OUT = Path("results")
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder of the tables.")]
Worlds = Annotated[str, typer.Option(metavar="A,B", help="Only these worlds, such as GameNPC; all by default.")]
Seeds = Annotated[int | None, typer.Option(min=2, help="Number of seeds, from 1000 on; default 20.")]
Steps = Annotated[int | None, typer.Option(min=300, help="Steps of an episode; default 30000.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; default, one per CPU.")]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="To see that all works: few seeds and steps, medium only; minutes of compiling.",
    ),
]


def scores(
    out: Out = DEFAULT_OUT,
    worlds: Worlds = "",
    seeds: Seeds = None,
    steps: Steps = None,
    jobs: Jobs = None,
    quick: Quick = False,
) -> None:
    """Measure the reference policies in every world, difficulty and regime: worlds.csv, worlds.md."""
    with clear_errors():
        from . import world_runs, world_scores

        chosen = world_runs.worlds_of(split(worlds))
        n_seeds = seeds or (world_scores.QUICK_SEEDS if quick else world_scores.N_SEEDS)
        n_steps = steps or (world_scores.QUICK_STEPS if quick else world_scores.N_STEPS)
        lines = world_scores.measure(
            chosen,
            n_seeds=n_seeds,
            n_steps=n_steps,
            difficulties=("medium",) if quick else world_runs.DIFFICULTIES,
            jobs=jobs or os.cpu_count() or 1,
            said=_said,
        )
        command = _command("scores", worlds, {"--seeds": n_seeds, "--steps": n_steps}) + (" --quick" if quick else "")
        _write(out, "worlds", world_scores.to_csv(lines), world_scores.to_markdown(lines, command))


def headroom(
    out: Out = DEFAULT_OUT,
    worlds: Worlds = "",
    seeds: Seeds = None,
    steps: Steps = None,
    jobs: Jobs = None,
    quick: Quick = False,
) -> None:
    """Measure what knowing the hidden type is worth, and what ignoring a change costs: headroom.csv, headroom.md."""
    with clear_errors():
        from . import headroom as headroom_module
        from . import world_runs

        chosen = world_runs.worlds_of(split(worlds))
        n_seeds = seeds or (headroom_module.QUICK_SEEDS if quick else headroom_module.N_SEEDS)
        n_steps = steps or (headroom_module.QUICK_STEPS if quick else headroom_module.N_STEPS)
        facts = headroom_module.measure(
            chosen,
            n_seeds=n_seeds,
            n_steps=n_steps,
            difficulties=("medium",) if quick else world_runs.DIFFICULTIES,
            jobs=jobs or os.cpu_count() or 1,
            said=_said,
        )
        command = _command("headroom", worlds, {"--seeds": n_seeds, "--steps": n_steps}) + (" --quick" if quick else "")
        _write(out, "headroom", headroom_module.to_csv(facts), headroom_module.to_markdown(facts, command))


def bench(
    what: Annotated[str, typer.Argument(metavar="worlds", help="What to time.")] = "worlds",
    worlds: Worlds = "",
    gymnax: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="Interpreter that has gymnax, to time its CartPole beside.")
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all numbers here, as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table here.")] = None,
    quick: Quick = False,
) -> None:
    """Time the worlds on one core, beside environments that everybody knows."""
    with clear_errors():
        from . import world_bench, world_runs

        if what != "worlds":
            raise ExperimentError(f"expected `habitus bench worlds`, got {what!r}; nothing else is timed.")
        chosen = world_runs.worlds_of(split(worlds))
        about = world_bench.machine()
        cases = world_bench.measure(
            chosen,
            n_rounds=world_bench.QUICK_ROUNDS if quick else world_bench.N_ROUNDS,
            n_steps=world_bench.QUICK_STEPS if quick else world_bench.N_STEPS,
            gymnax=gymnax,
            said=_said,
        )
        words = {"--gymnax": "PYTHON"} if gymnax else {}
        command = _command("bench worlds", worlds, words) + (" --quick" if quick else "")
        if json is not None:
            _replace(json, world_bench.to_json(cases, command, about))
        table = world_bench.to_markdown(cases, command, about)
        if markdown is not None:
            _replace(markdown, table)
        print(table)


COMMANDS: tuple[Callable[..., None], ...] = (scores, headroom, bench)


def _said(text: str) -> None:
    rich.console.Console(stderr=True).print(text, highlight=False)


def _command(name: str, worlds: str, options: Mapping[str, Any]) -> str:
    """The command that makes the same numbers again, wherever they are written to."""
    words = ["habitus", *name.split(), *(("--worlds", worlds) if worlds else ())]
    return shlex.join([*words, *(str(word) for option in options.items() for word in option)])


def _write(folder: Path, name: str, table: str, text: str) -> None:
    for suffix, content in ((".csv", table), (".md", text)):
        _replace(folder / (name + suffix), content)
    print(f"{folder / name}.csv, {folder / name}.md")


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
