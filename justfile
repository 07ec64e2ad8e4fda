# The recipes of the project for those who have `just`; each is one of nox's sessions.

# Run the same checks we run in CI
ci:
    bash .ci/run

# List available recipes
help:
    @just --list

# Measure the designs; `just bench --quick`
bench *words:
    nox -s bench -- {{ words }}

# Kill, race and cut off real servers; `just chaos --minutes 2`
chaos *words:
    nox -s chaos -- {{ words }}

# Bring a deployment up, show what it does, and take it down
demo *deployment:
    nox -s demo -- {{ deployment }}

# Build the documentation as a site
docs:
    nox -s docs

# Mend what the linters can mend by themselves
fix:
    nox -s fix

# Write every artefact of the specs; `just generate --check` only looks
generate *words:
    nox -s generate -- {{ words }}

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

# Compare the specs with their last accepted form
review *words:
    nox -s review -- {{ words }}

# Run tests; with words, pytest alone with those
test *words:
    nox -s test -- {{ words }}

# Run a deployment until Ctrl-C: `just up orchestrator.local`
up *deployment:
    nox -s up -- {{ deployment }}
