"""Commands that measure speed: `habitus bench worlds`, `habitus bench kernel` and `habitus bench training`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .cli_errors import clear_errors, split
from .measure_cli import Quick, Worlds, check_writable, command_of, replace, said

Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Write all numbers here, as JSON.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table here.")]

app = typer.Typer(help="Measure speed on one core, beside what everybody knows.", no_args_is_help=True)


@app.command()
def worlds(
    worlds: Worlds = "",
    gymnax: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="Interpreter that has gymnax, to time its CartPole beside.")
    ] = None,
    json: Json = None,
    markdown: Markdown = None,
    quick: Quick = False,
) -> None:
    """Time the worlds on one core, beside environments that everybody knows."""
    with clear_errors():
        from . import bench_tools, world_bench, world_runs

        chosen = world_runs.worlds_of(split(worlds))
        check_writable(json, markdown)
        about = world_bench.machine()
        cases = world_bench.measure(
            chosen,
            n_rounds=bench_tools.QUICK_ROUNDS if quick else bench_tools.N_ROUNDS,
            n_steps=world_bench.QUICK_STEPS if quick else world_bench.N_STEPS,
            gymnax=gymnax,
            said=said,
        )
        words = {"--gymnax": "PYTHON"} if gymnax else {}
        command = command_of("bench worlds", worlds, words) + (" --quick" if quick else "")
        table = world_bench.to_markdown(cases, command, about)
        _written(table, markdown, world_bench.to_json(cases, command, about), json)


@app.command()
def kernel(
    nodes: Annotated[
        str, typer.Option(metavar="N,M", help="Nodes of the large graphs, 1e3 to 1e7; 1e7 needs 16 GB.")
    ] = "1e4,1e5,1e6",
    json: Json = None,
    markdown: Markdown = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="To see that all works: small batches, short timings, 3 rounds.")
    ] = False,
) -> None:
    """Time the activation kernels on one core, beside SciPy, NumPy, scikit-network and plain Python."""
    with clear_errors():
        from . import bench_tools

        bench_tools.use_one_thread()
        from . import kernel_bench

        sizes = kernel_bench.sizes_of(nodes)
        check_writable(json, markdown)
        about = kernel_bench.machine()
        n_rounds = bench_tools.QUICK_ROUNDS if quick else bench_tools.N_ROUNDS
        bench = kernel_bench.measure(sizes, n_rounds=n_rounds, is_quick=quick, said=said)
        command = command_of("bench kernel", "", {"--nodes": nodes}) + (" --quick" if quick else "")
        table = kernel_bench.to_markdown(bench, command, about)
        _written(table, markdown, kernel_bench.to_json(bench, command, about), json)


@app.command()
def training(
    worlds: Worlds = "",
    json: Json = None,
    markdown: Markdown = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="To see that all works: few steps, 3 rounds; minutes of compiling.")
    ] = False,
) -> None:
    """Time the learner with its world on one core, beside PPO and DQN of stable-baselines3."""
    with clear_errors():
        from . import bench_tools

        bench_tools.use_one_thread()
        from . import training_bench, world_runs

        training_bench.step_without_delay()
        chosen = world_runs.worlds_of(split(worlds))
        check_writable(json, markdown)
        about = training_bench.machine()
        n_rounds = bench_tools.QUICK_ROUNDS if quick else bench_tools.N_ROUNDS
        cases, sizes = training_bench.measure(chosen, n_rounds=n_rounds, is_quick=quick, said=said)
        command = command_of("bench training", worlds, {}) + (" --quick" if quick else "")
        table = training_bench.to_markdown(cases, sizes, command, about)
        _written(table, markdown, training_bench.to_json(cases, sizes, command, about), json)


def _written(table: str, markdown: Path | None, numbers: str, json: Path | None) -> None:
    if json is not None:
        replace(json, numbers)
    if markdown is not None:
        replace(markdown, table)
    print(table)
