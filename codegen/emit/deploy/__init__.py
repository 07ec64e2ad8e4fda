"""Emitters of Compose files, Kubernetes manifests, images, alerts and dashboards."""
