"""YAML text to the model of a spec: read with positions, fit into the language, checked and indexed."""
