"""The command line."""

from cepheid.cli.main import main

__all__ = ["main"]
