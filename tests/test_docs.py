"""What the documents say runs: README examples, commands, links and docstring examples."""

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("cognition/*/README.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
MODULES = sorted(
    ".".join(("habitus", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for folder in ("envs", "cognition", "agents", "scenarios", "experiments")
    for path in (ROOT / folder).rglob("*.py")
)


def blocks(path: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(path.read_text(encoding="utf-8")) if name == language]


def commands() -> list[list[str]]:
    lines = [line for path in DOCUMENTS for body in blocks(path, "console") for line in body.splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_examples_of_the_documents_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__readme__"}
    for body in blocks(path, "python"):
        exec(compile(body, str(path), "exec"), namespace)


def test_the_readme_shows_both_commands_of_a_fresh_machine():
    shown = [" ".join(command) for command in commands()]
    assert "make demo" in shown
    assert "make test" in shown


def test_documented_commands_exist():
    from habitus.experiments import cli

    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands():
        if command[0] == "make":
            assert re.search(rf"^{command[1]}:", makefile, re.M), command
        elif command[0] == "habitus":
            names = command[1:3] if command[1] == "bench" else command[1:2]  # bench has commands of its own
            result = CliRunner().invoke(cli.app, [*names, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
            assert result.exit_code == 0, command
            for option in (word.split("=")[0] for word in command[2:] if word.startswith("--")):
                assert option in result.output, command


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_the_documents_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\":]+)\"", path.read_text(encoding="utf-8"))
    missing = [target for pair in targets for target in pair if target and not (path.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_folder_has_a_readme_with_its_decisions():
    for folder in ("envs", "cognition", "agents", "scenarios", "experiments"):
        assert "## Decisions" in (ROOT / folder / "README.md").read_text(encoding="utf-8")
