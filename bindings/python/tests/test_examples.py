"""The examples run, and show what they say."""

import importlib.util
import json
from pathlib import Path

import needs

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_sparse_head(capsys):
    torch = needs.module("torch", "torch")
    threads = torch.get_num_threads()
    spec = importlib.util.spec_from_file_location("sparse_head", EXAMPLES / "sparse_head.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        result = module.main(steps=200, rows=200)
    finally:
        torch.set_num_threads(threads)
    assert result["before"] == 25
    # Most classes are dropped, and almost no probability; the likelihood stays.
    assert result["after"] < 15 and result["kept"] > 0.9
    assert result["sparse_nll"] < result["nll"] + 0.5
    assert result["restored"] == 1
    assert "times as fast" in capsys.readouterr().out


def test_the_notebook_has_its_output():
    notebook = json.loads((EXAMPLES / "sparse_head.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert any("text/html" in output.get("data", {}) for cell in code for output in cell["outputs"])
