"""The spec language, a module for each file of a spec.

The models define the language: the loader validates specs against them, and the JSON Schemas for editors are
generated from them.
"""

from __future__ import annotations

from pydantic import BaseModel

from codegen.language.callers import CallersFile
from codegen.language.deployments import DeploymentsFile
from codegen.language.environment import EnvironmentFile
from codegen.language.errors import ErrorsFile
from codegen.language.lifecycle import LifecycleFile
from codegen.language.metrics import MetricsFile
from codegen.language.services import ServicesFile
from codegen.language.storage import StorageFile
from codegen.language.system import SystemFile
from codegen.language.types import TypesFile

FILES: dict[str, type[BaseModel]] = {
    "system": SystemFile,
    "types": TypesFile,
    "lifecycle": LifecycleFile,
    "storage": StorageFile,
    "services": ServicesFile,
    "callers": CallersFile,
    "errors": ErrorsFile,
    "environment": EnvironmentFile,
    "deployments": DeploymentsFile,
    "metrics": MetricsFile,
}
"""The files of a spec, in reading order."""

OPTIONAL = frozenset({"metrics", "storage"})
"""Files that a spec need not have; a missing one is empty."""
