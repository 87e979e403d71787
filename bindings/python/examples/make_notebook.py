"""Makes sparse_head.ipynb, with its output: run it after a change to sparse_head.py.

    pip install nbclient nbformat ipykernel && python bindings/python/examples/make_notebook.py
"""

from pathlib import Path

import nbclient
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent

CELLS = [
    new_markdown_cell(
        "# A trained model, its head made sparse in one line\n\n"
        "A conditional variational autoencoder with a discrete latent variable of 25 classes predicts where someone on a "
        "street corner goes. The model and its data are in `sparse_head.py` beside this notebook; it needs no data and no "
        "network."
    ),
    new_code_cell(
        "import torch\n\nimport shafer\nimport shafer.torch\nfrom sparse_head import Cvae, draw, possible_paths\n\n"
        "torch.set_num_threads(1)\ntorch.manual_seed(0)\ngenerator = torch.Generator().manual_seed(0)\nmodel = Cvae()\n"
        "optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)\nfor step in range(400):\n"
        "    loss = model.nll(*draw(256, generator))\n    optimiser.zero_grad()\n    loss.backward()\n"
        "    optimiser.step()\nf'negative log-likelihood {loss.item():.2f}'"
    ),
    new_markdown_cell("The evidence in the logits of the last corner, which people leave in four directions:"),
    new_code_cell(
        "corner = torch.tensor([[0.0, 0.0, 0.0, 1.0]])\nlogits = model.prior(corner).detach().numpy()[0]\n"
        "shafer.Evidence.from_logits(logits)"
    ),
    new_markdown_cell("Belief functions say more than a distribution does: how much is left open, and how far the evidence disagrees."),
    new_code_cell(
        "belief = shafer.Belief.from_logits(logits)\n"
        "supported = belief.evidence.support()\n"
        "{'supported': supported, 'belief': belief.belief(supported), 'plausibility': belief.plausibility(supported)}"
    ),
    new_markdown_cell("One line makes the head sparse. The parameters and the code of the model stay as they are."),
    new_code_cell(
        "x, corners = draw(2000, generator)\n\n\ndef report(name):\n    with torch.no_grad():\n"
        "        paths = len(possible_paths(model, corners)) / len(corners)\n"
        "        print(f'{name:10}  {paths:4.1f} paths a corner, negative log-likelihood {model.nll(x, corners).item():.3f}')\n\n\n"
        "report('softmax')\nhead = shafer.torch.sparsify_head(model, 'prior.linear')\nreport('evidential')\n"
        "head.restore()\nreport('restored')"
    ),
    new_markdown_cell("Other methods on the same logits:"),
    new_code_cell(
        "for method in ('softmax', 'evidential', 'sparsemax', 'entmax:alpha=1.5', 'min-p:p=0.05'):\n"
        "    print(f'{method:17}', shafer.support_size(logits, method).item(), 'classes')"
    ),
]


def main() -> None:
    notebook = new_notebook(cells=CELLS, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for number, cell in enumerate(notebook.cells):
        # The same each time.
        cell.id = f"cell-{number}"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, HERE / "sparse_head.ipynb")


if __name__ == "__main__":
    main()
