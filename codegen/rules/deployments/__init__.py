"""Rules of deployments.yaml."""
