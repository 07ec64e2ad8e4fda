"""Everything that is generated from spec/. Do not edit; run `nox -s generate`."""
