"""The examples for Ray and Spark, against the functions on one machine. Without ray or pyspark they are skipped."""

import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shafer

# Warnings of Ray and Spark about themselves.
pytestmark = pytest.mark.filterwarnings("default")

EXAMPLES = Path(__file__).parents[1] / "examples"
PARTS, ROWS, CLASSES = 12, 2000, 64


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def logits(tmp_path: Path) -> Path:
    folder = tmp_path / "logits"
    folder.mkdir()
    generator = np.random.default_rng(1)
    for part in range(PARTS):
        values = 3 * generator.standard_normal((ROWS, CLASSES), dtype="f4")
        ids = range(part * ROWS, (part + 1) * ROWS)
        table = pa.table({"id": pa.array(ids), "logits": pa.array(list(values), pa.list_(pa.float32()))})
        pq.write_table(table, folder / f"part-{part:02}.parquet")
    return folder


def check(source: Path, target: Path) -> None:
    """All rows are there once, and as one machine computes them."""
    before = pq.read_table(source).sort_by("id")
    after = pq.read_table(target).sort_by("id")
    assert after["id"].equals(before["id"])
    dense = shafer.evidential(np.stack(before["logits"].to_numpy()))
    rows = zip(after["class"].to_pylist(), after["p"].to_pylist(), dense, strict=True)
    for classes, p, expected in rows:
        assert classes == list(np.flatnonzero(expected))
        assert np.allclose(p, expected[classes], rtol=1e-6)


def test_ray_loses_a_node(logits: Path, tmp_path: Path) -> None:
    ray = needs.module("ray", "ray")
    needs.module("ray.data", "ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        # Whenever it dies, before, in or after its work: the rows are the same.
        killer = threading.Timer(6.0, cluster.remove_node, [second, False])
        killer.start()
        example("ray_tables").main(str(logits), str(tmp_path / "sparse"), cluster.address)
        killer.join()
        assert len([node for node in ray.nodes() if node["Alive"]]) == 1
    finally:
        ray.shutdown()
        cluster.shutdown()
    check(logits, tmp_path / "sparse")


def test_spark(logits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.module("pyspark", "pyspark")
    # Otherwise workers are the first python3 of the path.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    example("spark_tables").main(str(logits), str(tmp_path / "sparse"))
    check(logits, tmp_path / "sparse")
