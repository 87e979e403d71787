"""Packages that not every machine has. Without one, tests are skipped with the reason; SHAFER_REQUIRE makes them fail."""

import importlib
import os
from typing import Any

import pytest


def module(name: str, need: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if need in os.environ.get("SHAFER_REQUIRE", "").split(","):
            raise
        pytest.skip(f"{need} is not installed ({error})", allow_module_level=True)
