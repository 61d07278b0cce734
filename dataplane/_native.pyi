"""Types of the compiled module; the sources are in `dataplane/src/bindings`."""

__version__: str
