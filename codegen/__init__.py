"""Charter's generator: a declarative spec in, every artefact of a job service out."""
