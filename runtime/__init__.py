"""The engine under every generated service. It knows no system by name."""
