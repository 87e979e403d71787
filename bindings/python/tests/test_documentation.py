"""The examples in the documentation, and the stubs of the compiled module."""

import doctest
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import needs
import numpy as np
import pytest

import shafer
from shafer import _core

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = ["shafer", "shafer.distance", "shafer._calibrate", "shafer._sample"]


def documented(module):
    """Names and texts of a module, its functions, its classes and their methods."""
    yield module.__name__, module.__doc__
    for name in getattr(module, "__all__", dir(module)):
        member = getattr(module, name)
        # Not what the module imports from elsewhere.
        own = (getattr(member, "__module__", None) or "shafer").startswith("shafer")
        if inspect.ismodule(member) or name.startswith("__") or not own:
            continue
        yield f"{module.__name__}.{name}", inspect.getdoc(member)
        if inspect.isclass(member):
            for inner, method in vars(member).items():
                if not inner.startswith("__") or inner == "__iter__":
                    yield f"{module.__name__}.{name}.{inner}", inspect.getdoc(method)


def run(module):
    examples = 0
    for name, text in documented(module):
        test = doctest.DocTestParser().get_doctest(text or "", {}, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        with np.printoptions(legacy=False):
            runner.run(test)
        assert runner.failures == 0, name
        examples += len(test.examples)
    return examples


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert run(importlib.import_module(name)) > 0


def test_examples_of_the_compiled_module():
    assert run(_core) > 60


@pytest.mark.parametrize("name", ["shafer.torch", "shafer.torch._functional", "shafer.torch._modules"])
def test_examples_of_torch(name):
    needs.module("torch", "torch")
    run(importlib.import_module(name))


def test_examples_of_generation():
    needs.module("torch", "torch")
    needs.module("transformers", "torch")
    assert run(importlib.import_module("shafer.torch._generation")) > 0


def test_examples_of_jax():
    needs.module("jax", "jax")
    assert run(importlib.import_module("shafer.jax")) > 0


@pytest.mark.parametrize("torch", [False, True])
def test_the_readme(torch):
    if torch:
        needs.module("torch", "torch")
    text = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = text.split("```python\n")[1:]
    assert blocks
    names = {}
    for number, block in enumerate(blocks):
        code = block.split("```")[0]
        if ("torch" in code) != torch:
            continue
        test = doctest.DocTestParser().get_doctest(code, names, f"README.md, block {number}", None, 0)
        # One block goes on with the names of the block before.
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        runner.run(test, clear_globs=False)
        names = test.globs
        assert test.examples and runner.failures == 0


def test_every_method_of_the_core_is_a_function():
    with pytest.raises(ValueError) as error:
        shafer.sparsify([0.0], "unknown")
    names = str(error.value).split("; use ")[1].split(", ")
    assert len(names) >= 12
    for name in names:
        assert callable(getattr(shafer, name.replace("-", "_")))


def test_everything_public_is_documented():
    for name, text in documented(shafer):
        assert text, name
    assert set(shafer.__all__) <= set(dir(shafer))


def test_stubs_are_those_of_the_compiled_module(tmp_path):
    needs.module("mypy", "mypy")
    # Names that start with an underscore are not part of the stubs' promise.
    command = [sys.executable, "-m", "mypy.stubtest", "shafer._core", "--ignore-disjoint-bases"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types_of_the_package(tmp_path):
    needs.module("mypy", "mypy")
    config = Path(__file__).parents[1] / "pyproject.toml"
    files = [f"--config-file={config}", f"--cache-dir={tmp_path}", "-p", "shafer"]
    done = subprocess.run([sys.executable, "-m", "mypy", *files], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
