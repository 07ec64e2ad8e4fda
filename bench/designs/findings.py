"""Everything that one invocation found, as the files of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.calibration import Costs
from bench.capacity import Capacity
from bench.designs.anatomy import Anatomy
from bench.designs.manifest import Manifest
from bench.designs.results import DesignResult, Record, write

_DESIGN = "design-"


class Model(Record):
    """The capacity model: what it was given and what it says of each design."""

    costs: Costs
    designs: Mapping[str, Capacity]


class Findings(Record):
    """What a report is made of."""

    manifest: Manifest
    designs: Mapping[str, DesignResult]
    anatomies: Mapping[str, Anatomy]
    model: Model | None

    def save(self, folder: Path) -> None:
        """Writes a file for each part."""
        write(folder, "manifest", self.manifest)
        for name, design in self.designs.items():
            write(folder, f"{_DESIGN}{name}", design)
        for name, anatomy in self.anatomies.items():
            write(folder, f"anatomy-{name}", anatomy)
        if self.model is not None:
            write(folder, "capacity", self.model)

    @classmethod
    def load(cls, folder: Path) -> Findings:
        """Reads what `save` wrote."""
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
            model=Model.model_validate_json(model.read_text()) if model.exists() else None,
        )
