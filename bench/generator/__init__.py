"""Load generator: client processes that call a deployment through its public API and measure the answers."""
