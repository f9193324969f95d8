"""The command `habitus`.

Exit codes: 0, all went well; 1, runs of a study failed; 2, the command cannot be done as given; 130, interrupted.
What is heavy is imported where it is used, so that `habitus --help` answers at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import rich.console
import rich.markup
import typer

from .. import __version__
from . import bench_cli, measure_cli, play_cli
from .cli_errors import clear_errors, split
from .errors import ExperimentError

if TYPE_CHECKING:
    from .results import Results
    from .study import Study

FAILED, INTERRUPTED = 1, 130
SHOWN_FAILURES = 5

app = typer.Typer(
    name="habitus",
    help="A reinforcement-learning benchmark of memory: worlds, agents that learn while they are scored, studies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command."""
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of a pipe, e.g. `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(0) from None


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and end.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"habitus {__version__}")
        raise typer.Exit


@app.command()
def run(
    study: Annotated[
        str, typer.Argument(metavar="STUDY|FILE", help="A named study (`habitus list studies`) or a YAML file.")
    ],
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the results; default results/STUDY.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, instead of the study's.")] = None,
    first_seed: Annotated[
        int | None, typer.Option(help="First seed, the others following, instead of the study's.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of every run, instead of the study's.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Worker processes; default, one per CPU.")] = None,
    agents: Annotated[str, typer.Option(metavar="A,B", help="Only these agents, by label.")] = "",
    worlds: Annotated[str, typer.Option(metavar="A,B", help="Only these worlds, by label.")] = "",
    stepwise: Annotated[
        bool, typer.Option("--stepwise", help="Step by step, also where many seeds can go through one compiled call.")
    ] = False,
) -> None:
    """Run a study: records, TensorBoard files, report.html. What is recorded already is not run again."""
    with clear_errors():
        from . import own_code, records, results, runner
        from . import study as study_module

        console = rich.console.Console(stderr=True)
        if jobs is not None and jobs < 1:
            raise ExperimentError(f"`--jobs` must be at least 1, got {jobs}.")
        if out is not None and not out.strip():
            raise ExperimentError("`--out` must name a folder, got an empty text; `--out .` is the current folder.")
        loaded = study_module.load(study)
        chosen = loaded.restricted(
            n_seeds=seeds, first_seed=first_seed, steps=steps, worlds=split(worlds), agents=split(agents)
        )
        folder = Path(out) if out is not None else Path("results") / loaded.name
        options = {
            "--out": folder,
            "--seeds": seeds,
            "--first-seed": first_seed,
            "--steps": steps,
            "--agents": agents or None,
            "--worlds": worlds or None,
        }
        words = ["habitus", "run", study, *(str(w) for o, v in options.items() if v is not None for w in (o, v))]
        beside = study_module.folder_of(study)
        _refuse_another(folder, chosen)

        def checked() -> None:
            _describe(folder, chosen, shlex.join(words), beside)

        console.print(f"[bold]{chosen.name}[/]  {rich.markup.escape(chosen.question)}", highlight=False)
        try:
            with own_code.importable(beside):
                outcome = runner.run_study(
                    chosen, folder, jobs=jobs, stepwise=stepwise, console=console, checked=checked
                )
        except runner.Interrupted:
            n_done = sum(1 for path in (folder / records.RUNS).iterdir() if not path.name.startswith("."))
            console.print(
                f"interrupted: {n_done} runs are recorded; the same command goes on from there.", highlight=False
            )
            raise typer.Exit(INTERRUPTED) from None
        for failed, error in outcome.failed[:SHOWN_FAILURES]:
            place = folder / records.RUNS / failed.hash / "record.json"
            console.print(
                f"[red]failed[/]  {rich.markup.escape(error)}\n        {place}", highlight=False, soft_wrap=True
            )
        if len(outcome.failed) > SHOWN_FAILURES:
            console.print(f"        and {len(outcome.failed) - SHOWN_FAILURES} more", highlight=False)
        if len(outcome.failed) < outcome.n_runs:
            with console.status("writing the report") if console.is_terminal else contextlib.nullcontext():
                with own_code.importable(beside):
                    loaded_results = results.load(folder)
                logdir, page = _write(loaded_results)
            _show(loaded_results, page)
            rich.console.Console().print(f"TensorBoard: tensorboard --logdir {logdir}", highlight=False, soft_wrap=True)
        if outcome.failed:
            console.print(f"{len(outcome.failed)} of {outcome.n_runs} runs failed.", highlight=False)
            raise typer.Exit(FAILED)


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of a study.")]) -> None:
    """Write report.html, the tables and the TensorBoard files of a study again, from its records."""
    with clear_errors():
        from . import own_code, results

        with own_code.importable(*results.code_folders(folder)):
            loaded = results.load(folder)
        _, page = _write(loaded)
        _show(loaded, page)


@app.command("list")
def list_(
    kind: Annotated[
        str, typer.Argument(metavar="[worlds|agents|styles|studies|applicants]", help="What; all by default.")
    ] = "",
) -> None:
    """List what there is to use."""
    with clear_errors():
        from . import listing

        for name in [kind] if kind else listing.KINDS:
            entries = listing.of(name)
            if not kind:
                print(f"{name}:")
            width = max(map(len, entries), default=0)
            for entry, line in entries.items():
                print(f"{'' if kind else '  '}{entry:<{width}}  {line}".rstrip())


@app.command()
def explain(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of a study.")],
    world: Annotated[str | None, typer.Option(help="Label of the world; default, the first.")] = None,
    agent: Annotated[str | None, typer.Option(help="Label of the agent; default, the first.")] = None,
    feedback: Annotated[str | None, typer.Option(help="Variant; default, the first.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the run; default, the first.")] = None,
    step: Annotated[int | None, typer.Option(help="Step of the decision; default, the last.")] = None,
) -> None:
    """Explain one decision of a recorded run: it is run again up to there and compared with its record."""
    with clear_errors():
        from . import explain as explain_module
        from . import own_code, results

        with own_code.importable(*results.code_folders(folder)):
            found = explain_module.explain(folder, world=world, agent=agent, feedback=feedback, seed=seed, step=step)
        run = found.run
        print(f"{run.world} · {run.agent} · {run.feedback} · seed {run.seed} · step {found.step} (run {run.hash})")
        print(f"\nsaw: {found.observation}")
        note = "" if found.action == found.choice else f", to explore; its evidence chose {found.choice}"
        print(f"did: {found.action}{note}")
        best = "" if found.best != found.best else f"; the best on offer was worth {found.best:.3f}"
        print(f"expected reward of that {found.score:.3f}{best}; reward in the end {found.reward:.3f}\n")
        print(found.text)


for _command in (play_cli.play, *measure_cli.COMMANDS):
    app.command()(_command)
app.add_typer(bench_cli.app, name="bench")


def _refuse_another(folder: Path, study: Study) -> None:
    """Refuse the folder of another study."""
    from . import results
    from . import study as study_module

    path = folder / results.STUDY
    if path.is_file():
        other = study_module.load(path, is_to_run=False).name
        if other != study.name:
            raise ExperimentError(
                f"`{folder}` holds the results of study `{other}`, not of `{study.name}`; choose another `--out`."
            )


def _describe(folder: Path, study: Study, command: str, beside: Path) -> None:
    """Say in the results' folder what is run. Only now, that nothing is refused any more: reports go by it."""
    from . import plan, results

    provenance = {
        "command": command,
        "habitus": __version__,
        "code": str(beside.resolve()),
        "digests": plan.digests_of(study),
    }
    _replace(folder / results.STUDY, study.to_yaml())
    _replace(folder / results.PROVENANCE, json.dumps(provenance, indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _write(loaded: Results) -> tuple[Path, Path]:
    """TensorBoard files and report. Returns both places."""
    from . import report as report_module
    from . import tensorboard

    return tensorboard.export(loaded), report_module.write(loaded)


def _show(loaded: Results, page: Path) -> None:
    """The result tables, what they say, and where the report lies."""
    from . import summary

    console = rich.console.Console()
    for title, table in summary.terminal(loaded):
        console.print(f"[bold]{rich.markup.escape(title)}[/]", highlight=False, soft_wrap=True)
        console.print(table)
    for sentence in summary.verdicts(loaded):
        console.print(rich.markup.escape(sentence), highlight=False, soft_wrap=True)
    for warning in summary.warnings(loaded):
        console.print(f"[yellow]note[/]  {rich.markup.escape(warning)}", highlight=False, soft_wrap=True)
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
