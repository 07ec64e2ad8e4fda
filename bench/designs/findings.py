"""Findings of one invocation, as the files of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.calibration import Costs
from bench.capacity import Capacity
from bench.designs.anatomy import Anatomy
from bench.designs.manifest import Manifest
from bench.designs.results import DesignResult, ResultRecord, write_record

_DESIGN = "design-"


class CapacityModel(ResultRecord):
    """The capacity model: its inputs and its predictions for each design."""

    costs: Costs
    designs: Mapping[str, Capacity]


class DesignFindings(ResultRecord):
    """The input of a report."""

    manifest: Manifest
    designs: Mapping[str, DesignResult]
    anatomies: Mapping[str, Anatomy]
    model: CapacityModel | None

    def save(self, folder: Path) -> None:
        """Write a file for each part into the folder."""
        write_record(folder, "manifest", self.manifest)
        for name, design in self.designs.items():
            write_record(folder, f"{_DESIGN}{name}", design)
        for name, anatomy in self.anatomies.items():
            write_record(folder, f"anatomy-{name}", anatomy)
        if self.model is not None:
            write_record(folder, "capacity", self.model)

    @classmethod
    def load(cls, folder: Path) -> DesignFindings:
        """Read the files of `save`."""
        manifest = Manifest.model_validate_json((folder / "manifest.json").read_text())
        model = folder / "capacity.json"
        anatomies = {name: folder / f"anatomy-{name}.json" for name in manifest.designs}
        return cls(
            manifest=manifest,
            designs={
                name: DesignResult.model_validate_json((folder / f"{_DESIGN}{name}.json").read_text())
                for name in manifest.designs
            },
            anatomies={
                name: Anatomy.model_validate_json(path.read_text())
                for name, path in anatomies.items()
                if path.exists()
            },
            model=CapacityModel.model_validate_json(model.read_text()) if model.exists() else None,
        )
