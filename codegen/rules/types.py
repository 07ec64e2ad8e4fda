"""Rules of types.yaml."""
