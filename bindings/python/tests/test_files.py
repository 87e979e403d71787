"""Arrays and heads in files."""

import os
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import shafer

FIXTURES = Path(__file__).parents[3] / "crates/shafer-data/tests/fixtures"


def test_arrays(tmp_path):
    x = np.random.default_rng(0).standard_normal((5, 3, 2))
    for dtype in (np.float64, np.float32, np.float16):
        np.save(tmp_path / "x.npy", x.astype(dtype))
        reader = shafer.open(tmp_path / "x.npy")
        assert (reader.shape, reader.dtype, reader.name) == ((5, 3, 2), np.dtype(dtype).name, None)
        np.testing.assert_array_equal(reader.read(2), x.astype(dtype)[:2])
        rest = reader.read()
        assert rest.dtype == dtype
        np.testing.assert_array_equal(rest, x.astype(dtype)[2:])
        assert reader.read().shape == (0, 3, 2)
        np.testing.assert_array_equal(np.concatenate(list(shafer.open(tmp_path / "x.npy"))), x.astype(dtype))
    np.savez(tmp_path / "x.npz", a=x, b=x[:1])
    np.testing.assert_array_equal(shafer.open(f"{tmp_path}/x.npz:b").read(), x[:1])
    np.testing.assert_array_equal(shafer.open(tmp_path / "x.npz", "a").read(), x)
    with pytest.raises(ValueError, match="a.*b"):
        shafer.open(tmp_path / "x.npz")
    np.save(tmp_path / "scalar.npy", np.float64(2.5))
    assert shafer.open(tmp_path / "scalar.npy").read() == 2.5
    np.save(tmp_path / "empty.npy", np.zeros((4, 0)))
    assert list(shafer.open(tmp_path / "empty.npy")) == []
    np.save(tmp_path / "half.npy", x.astype(ml_dtypes.bfloat16).view(np.uint16).view("V2"))
    half = shafer.open(f"{tmp_path}/half.npy:bfloat16").read()
    assert half.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(half, x.astype(ml_dtypes.bfloat16))


def test_tables(tmp_path):
    lines = ["id," + ",".join(f"logit_{k}" for k in range(4))]
    x = np.arange(3000 * 4).reshape(3000, 4) / 8
    lines += [f"{i}," + ",".join(map(str, row)) for i, row in enumerate(x)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    reader = shafer.open(tmp_path / "x.csv", columns=["logit_*"])
    assert reader.shape == (None, 4) and reader.columns == [f"logit_{k}" for k in range(4)]
    np.testing.assert_array_equal(reader.read(), x)
    np.testing.assert_array_equal(shafer.open(tmp_path / "x.csv", exclude=["id"]).read(), x)
    reader = shafer.open(tmp_path / "x.csv", columns=["logit_0..logit_3"])
    np.testing.assert_array_equal(reader.read(10), x[:10])
    np.testing.assert_array_equal(np.concatenate(list(reader)), x[10:])
    with pytest.raises(ValueError, match="logit_9"):
        shafer.open(tmp_path / "x.csv", columns=["logit_9"])


@pytest.mark.parametrize("name", ["tiny.pt", "tiny.safetensors"])
def test_heads(name):
    (head, *_) = shafer.heads(FIXTURES / name)
    assert (head.weight, head.features, head.classes) == ("head.weight", 8, 5)
    assert repr(head) == "<HeadCandidate: head.weight, 8 features, 5 classes>"
    layer = shafer.load_head(FIXTURES / name)
    assert layer.weight.shape == (5, 8) and layer.bias.shape == (5,)
    assert layer == shafer.load_head(FIXTURES / name, "head")
    assert not shafer.load_head(FIXTURES / name, bias=False).bias.any()
    turned = shafer.load_head(FIXTURES / name, layout="features-by-classes", bias=False)
    np.testing.assert_array_equal(turned.weight.T.ravel(), layer.weight.ravel())


def test_a_pickle_is_not_executed(tmp_path):
    class Attack:
        def __reduce__(self):
            return (os.system, (f"touch {tmp_path}/executed",))

    (tmp_path / "model.pt").write_bytes(pickle.dumps({"weight": Attack()}))
    with pytest.raises(ValueError):
        shafer.heads(tmp_path / "model.pt")
    assert not (tmp_path / "executed").exists()
