"""Commands that measure without a study: `habitus scores`, `habitus headroom`, `habitus generality`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import rich.console
import typer

from .cli_errors import clear_errors, split

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
        check_writable(*_tables(out, "worlds"))
        n_seeds = seeds or (world_scores.QUICK_SEEDS if quick else world_scores.N_SEEDS)
        n_steps = steps or (world_scores.QUICK_STEPS if quick else world_scores.N_STEPS)
        lines = world_scores.measure(
            chosen,
            n_seeds=n_seeds,
            n_steps=n_steps,
            difficulties=("medium",) if quick else world_runs.DIFFICULTIES,
            jobs=jobs or os.cpu_count() or 1,
            said=said,
        )
        command = command_of("scores", worlds, {"--seeds": n_seeds, "--steps": n_steps}) + (" --quick" if quick else "")
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
        check_writable(*_tables(out, "headroom"))
        n_seeds = seeds or (headroom_module.QUICK_SEEDS if quick else headroom_module.N_SEEDS)
        n_steps = steps or (headroom_module.QUICK_STEPS if quick else headroom_module.N_STEPS)
        facts = headroom_module.measure(
            chosen,
            n_seeds=n_seeds,
            n_steps=n_steps,
            difficulties=("medium",) if quick else world_runs.DIFFICULTIES,
            jobs=jobs or os.cpu_count() or 1,
            said=said,
        )
        command = command_of("headroom", worlds, {"--seeds": n_seeds, "--steps": n_steps}) + (
            " --quick" if quick else ""
        )
        _write(out, "headroom", headroom_module.to_csv(facts), headroom_module.to_markdown(facts, command))


def generality(
    out: Out = DEFAULT_OUT,
    tasks: Annotated[
        str, typer.Option(metavar="A,B", help="Only these tasks, ids of Gymnasium or names such as Taxi; default six.")
    ] = "",
    agents: Annotated[str, typer.Option(metavar="A,B", help="Only these agents; default all five.")] = "",
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds, from 1000 on; default 10.")] = None,
    budgets: Annotated[
        str, typer.Option(metavar="N,M", help="Steps after which agents are read; default 2000,10000,30000.")
    ] = "",
    jobs: Jobs = None,
    quick: Annotated[bool, typer.Option("--quick", help="To see that all works: two seeds, a thousand steps.")] = False,
) -> None:
    """Measure one substrate on tasks of Gymnasium, beside tabular Q, DQN and PPO: generality.csv, generality.md.

    What is recorded already, in DIR/generality, is not run again.
    """
    with clear_errors():
        from . import generality as generality_module
        from . import generality_tables

        chosen, names = generality_module.tasks_of(split(tasks)), generality_module.agents_of(split(agents))
        steps = generality_module.budgets_of(split(budgets), quick=quick)
        check_writable(*_tables(out, "generality"))
        n_seeds = seeds or (generality_module.QUICK_SEEDS if quick else generality_module.N_SEEDS)
        readings = generality_module.measure(
            chosen,
            out / "generality",
            names=names,
            n_seeds=n_seeds,
            budgets=steps,
            jobs=jobs or os.cpu_count() or 1,
            said=said,
        )
        options = {"--tasks": tasks, "--agents": agents, "--seeds": n_seeds, "--budgets": ",".join(map(str, steps))}
        command = command_of("generality", "", {name: value for name, value in options.items() if value})
        _write(out, "generality", generality_tables.to_csv(readings), generality_tables.to_markdown(readings, command))


COMMANDS: tuple[Callable[..., None], ...] = (scores, headroom, generality)


def said(text: str) -> None:
    """Say what is being done."""
    rich.console.Console(stderr=True).print(text, highlight=False)


def command_of(name: str, worlds: str, options: Mapping[str, Any]) -> str:
    """The command that makes the same numbers again, wherever they are written to."""
    words = ["habitus", *name.split(), *(("--worlds", worlds) if worlds else ())]
    return shlex.join([*words, *(str(word) for option in options.items() for word in option)])


def _write(folder: Path, name: str, table: str, text: str) -> None:
    paths = _tables(folder, name)
    for path, content in zip(paths, (table, text), strict=True):
        replace(path, content)
    print(", ".join(map(str, paths)))


def _tables(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.csv", folder / f"{name}.md"


def replace(path: Path, text: str) -> None:
    """Write a file anew, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check_writable(*paths: Path | None) -> None:
    """Refuse what cannot be written to before minutes are spent on it.

    Raises:
        OSError: a path is a folder, or cannot be opened; what is there stays.
    """
    for path in paths:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            is_new = not path.exists()
            with path.open("a", encoding="utf-8"):
                pass
            if is_new:
                path.unlink()
