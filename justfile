# The recipes of the project for those who have `just`; each is one of nox's sessions.

# Run the same checks we run in CI
ci:
    bash .ci/run

# List available recipes
help:
    @just --list

# Install what the other recipes need
install-tools:
    python3 -m pip install --quiet nox

# Vet dependency licenses
licenses:
    nox -s licenses

# Lint and automatically fix what we can fix
lint:
    nox -s fix
    nox -s lint

# Run tests
test:
    nox -s test
