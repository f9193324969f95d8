"""What is installed is what the tree holds."""

import tomllib
from pathlib import Path

import habitus

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOT_PACKAGES = {"tests", "build", "dist", "results"}


def package_folders() -> set[str]:
    """Folders of the tree that hold modules, as package names."""
    found = {"habitus"}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts[:-1]
        if parts and parts[0] not in NOT_PACKAGES and not any(part.startswith((".", "__")) for part in parts):
            found.add(".".join(("habitus", *parts)))
    return found


def test_every_package_of_the_tree_is_listed():
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == package_folders()


def test_every_data_file_of_the_tree_is_packaged():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    packaged = set()
    for package, globs in patterns.items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in globs:
            matches = list(folder.glob(pattern))
            assert matches, f"{pattern} of {package} matches nothing"
            packaged.update(matches)
    data = {
        path
        for folder in ("envs", "cognition", "agents", "scenarios", "experiments")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc", ".md"} and "published" not in path.parts
    }
    assert data <= packaged


def test_versions_agree():
    assert PROJECT["project"]["version"] == habitus.__version__


def test_every_requirement_is_pinned_in_the_tested_set():
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(name for extra in extras for name in extra)]
    names = {name.split(">=")[0].lower().replace("_", "-") for name in wanted}
    assert names <= pinned
