"""shafer.torch: values against the kernels, entmax and PyTorch; gradients, compilation, heads, generation."""

import copy
import io

import needs
import numpy as np
import oracle
import pytest

import shafer

torch = needs.module("torch", "torch")
import shafer.torch as st  # noqa: E402
from shafer.torch import _composed, _operator  # noqa: E402

METHODS = sorted(oracle.METHODS)
# Smooth in the logits, so that second derivatives are tested too.
GRADIENTS = METHODS


def normal(*shape, dtype=torch.float64, seed=0):
    return (3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def apart(*shape, seed=0):
    """Logits without ties, far from every threshold compared to the steps of gradcheck."""
    order = torch.randperm(int(np.prod(shape)), generator=torch.Generator().manual_seed(seed))
    return (order.double() * 0.37 + 0.1 * torch.sin(order.double())).reshape(shape) % 5 - 2


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_values(method, dtype):
    x = normal(4, 5, 6, dtype=dtype)
    for view in (x, x.transpose(0, 2), x[:, ::2], x.expand(2, 4, 5, 6)):
        for dim in range(-view.dim(), view.dim()):
            if view.shape[dim] < 3:
                continue
            p = st.sparsify(view, method, dim=dim)
            assert p.dtype == dtype and p.shape == view.shape and p.is_contiguous()
            expected = oracle.along(method, view.double().numpy(), dim)
            tolerance = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype]
            np.testing.assert_allclose(p.double().numpy(), expected, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_the_composed_operations_are_the_kernels(method, dtype):
    """What another device computes, computed here."""
    x = normal(30, 17, dtype=dtype, seed=1)
    mask = torch.rand(x.shape, generator=torch.Generator().manual_seed(2)) < 0.8
    mask[:, :3] = True
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 1e-2}[dtype]
    for temperature in (1.0, 0.5, 2.0):
        for kept in (None, mask):
            p = st.sparsify(x, method, temperature=temperature, mask=kept)
            composed = _composed.sparsify(x, method, -1, temperature, kept)
            torch.testing.assert_close(composed, p, atol=tolerance, rtol=0)
            assert ((composed > 0) == (p > 0)).double().mean() > 0.999
            g = normal(30, 17, dtype=dtype, seed=3)
            vjp = _operator.sparsify_vjp(x, p, g, method, -1, temperature, kept)
            again = _composed.vjp(x, p, g, method, -1, temperature, kept)
            torch.testing.assert_close(again, vjp, atol=20 * tolerance, rtol=20 * tolerance)
    moved = _composed.sparsify(x, method, 0, 1.0, None)
    torch.testing.assert_close(moved, st.sparsify(x, method, dim=0), atol=tolerance, rtol=0)
    empty = _composed.sparsify(x[:0], method, -1, 1.0, None)
    assert empty.shape == (0, 17)


def test_errors_of_the_composed_operations():
    for bad, message in ((float("nan"), "NaN or inf"), (float("inf"), "NaN or inf"), (float("-inf"), "masked")):
        with pytest.raises(ValueError, match=message):
            _composed.sparsify(torch.full((2, 3), bad), "evidential", -1, 1.0, None)
    with pytest.raises(ValueError, match="k is 4"):
        _composed.sparsify(torch.zeros(3), "top-k:k=4", -1, 1.0, None)
    with pytest.raises(ValueError, match="temperature"):
        _composed.sparsify(torch.zeros(3), "softmax", -1, -1.0, None)
    with pytest.raises(ValueError, match="empty"):
        _composed.sparsify(torch.zeros(2, 0), "softmax", -1, 1.0, None)
    with pytest.raises(ValueError, match="no scale"):
        _composed.sparsify(torch.zeros(3), "sparsegen-hg:q=0", -1, 1.0, None)


def test_against_entmax_and_torch():
    entmax = needs.module("entmax", "torch")
    x = normal(50, 40, dtype=torch.float32)
    torch.testing.assert_close(st.sparsify(x, "softmax"), torch.softmax(x, -1))
    torch.testing.assert_close(st.sparsify(x, "sparsemax"), entmax.sparsemax(x, -1))
    torch.testing.assert_close(st.sparsify(x, "entmax:alpha=1.5"), entmax.entmax15(x, -1))
    torch.testing.assert_close(st.sparsify(x, "entmax:alpha=1.3"), entmax.entmax_bisect(x, 1.3, -1), atol=1e-5, rtol=1e-4)
    a, b = (x.clone().requires_grad_() for _ in range(2))
    g = normal(50, 40, dtype=torch.float32, seed=4)
    st.sparsify(a, "entmax:alpha=1.5").backward(g)
    entmax.entmax15(b, -1).backward(g)
    torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dim", [-1, 0])
@pytest.mark.parametrize("method", GRADIENTS)
def test_gradients(method, dim):
    x = apart(5, 6).requires_grad_()

    def function(x):
        return st.sparsify(x, method, dim=dim, temperature=1.3)

    assert torch.autograd.gradcheck(function, (x,), eps=1e-7, atol=1e-5)
    assert torch.autograd.gradgradcheck(function, (x,), eps=1e-6, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_operators(method):
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[3] = False
    for arguments in ((apart(4, 6).requires_grad_(), method, -1, 1.0, None), (apart(4, 6), method, 0, 0.5, mask)):
        torch.library.opcheck(_operator.sparsify, arguments)
        x, *rest = arguments
        p = _operator.sparsify(x.detach(), *rest)
        torch.library.opcheck(_operator.sparsify_vjp, (x.detach(), p, torch.ones_like(p), *rest))


def test_sparse_logits():
    x = normal(20, 9, seed=5)
    for method in METHODS:
        p = st.sparsify(x, method, temperature=0.7)
        z = st.sparse_logits(x, method, temperature=0.7)
        torch.testing.assert_close(torch.softmax(z, -1), p)
        leaf = x.clone().requires_grad_()
        torch.softmax(st.sparse_logits(leaf, method, temperature=0.7), -1)[:, 0].sum().backward()
        other = x.clone().requires_grad_()
        st.sparsify(other, method, temperature=0.7)[:, 0].sum().backward()
        torch.testing.assert_close(leaf.grad, other.grad)


def test_modules():
    x = normal(7, 9, dtype=torch.float32)
    modules = [
        (st.Evidential(2), "evidential:rounds=2"),
        (st.Softmax(), "softmax"),
        (st.Sparsemax(), "sparsemax"),
        (st.SparsegenLin(0.3), "sparsegen-lin:lambda=0.3"),
        (st.SparsegenHg(0.7), "sparsegen-hg:q=0.7"),
        (st.Entmax(1.3), "entmax:alpha=1.3"),
        (st.TopK(3), "top-k:k=3"),
        (st.TopP(0.8), "top-p:p=0.8"),
        (st.MinP(0.1), "min-p:p=0.1"),
        (st.TopNSigma(), "top-n-sigma:n=1"),
        (st.MinEvidence(0.6), "min-evidence:w=0.6"),
        (st.MinProbability(0.07), "min-probability:p=0.07"),
    ]
    for module, method in modules:
        torch.testing.assert_close(module(x), st.sparsify(x, method))
        assert method in repr(module) or method.split(":")[0] in repr(module)
        copied = copy.deepcopy(module)
        buffer = io.BytesIO()
        torch.save(copied, buffer)
        buffer.seek(0)
        torch.testing.assert_close(torch.load(buffer, weights_only=False)(x), module(x))
    with pytest.raises(ValueError, match="k is 0"):
        st.TopK(0)


def test_compiled_as_one_graph():
    @torch.compile(fullgraph=True, backend="aot_eager")
    def function(x):
        return (st.sparsify(2 * x, "sparsemax") * x).sum() + st.sparse_logits(x).logsumexp(-1).sum()

    x = normal(5, 8, dtype=torch.float32).requires_grad_()
    y = x.detach().clone().requires_grad_()
    result = function(x)
    result.backward()
    expected = (st.sparsify(2 * y, "sparsemax") * y).sum() + st.sparse_logits(y).logsumexp(-1).sum()
    expected.backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(x.grad, y.grad)
    module = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), st.Evidential()), fullgraph=True, backend="eager")
    assert module(x).shape == (5, 8)


def test_fake_and_meta_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        p = st.sparsify(torch.empty(3, 4, dtype=torch.bfloat16).t())
    assert p.shape == (4, 3) and p.dtype == torch.bfloat16
    assert st.sparsify(torch.empty(3, 4, device="meta")).device.type == "meta"


def test_vmap_and_functional_gradients():
    x = normal(3, 4, 5)
    mask = torch.ones(5, dtype=torch.bool)
    mask[4] = False
    for dim in (-1, 0, 1):
        batched = torch.vmap(lambda x, dim=dim: st.sparsify(x, "sparsemax", dim=dim))(x)
        each = torch.stack([st.sparsify(row, "sparsemax", dim=dim) for row in x])
        torch.testing.assert_close(batched, each)
    batched = torch.vmap(lambda x: st.sparsify(x, mask=mask), in_dims=1)(x)
    torch.testing.assert_close(batched, torch.stack([st.sparsify(x[:, i], mask=mask) for i in range(4)]))


def test_autocast():
    x = normal(5, 9, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = st.sparsify(x)
    assert p.dtype == torch.softmax(x.float(), -1).dtype == torch.float32
    torch.testing.assert_close(p, st.sparsify(x.float()))
    layer = torch.nn.Linear(9, 4)
    leaf = torch.randn(5, 9, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        st.Evidential()(layer(leaf)).square().sum().backward()
    assert leaf.grad is not None and leaf.grad.dtype == torch.float32


def test_functions_of_numpy_take_tensors():
    x = normal(4, 6, dtype=torch.float32)
    p = shafer.evidential(x)
    assert isinstance(p, torch.Tensor) and p.dtype == torch.float32
    np.testing.assert_array_equal(p.numpy(), shafer.evidential(x.numpy()))
    leaf = x.clone().requires_grad_()
    shafer.sparsify(leaf, "sparsemax", axis=0).square().sum().backward()
    assert leaf.grad.abs().sum() > 0
    rows = shafer.sparsify(leaf, sparse=True)
    np.testing.assert_array_equal(rows.toarray(), shafer.sparsify(x.numpy(), sparse=True).toarray())
    half = x.to(torch.bfloat16)
    assert shafer.evidential(half).dtype == torch.bfloat16
    assert shafer.sparsify(half, sparse=True).dtype == np.float32
    mask = torch.tensor([True] * 5 + [False])
    assert (shafer.softmax(x, mask=mask)[:, 5] == 0).all()
    assert (shafer.softmax(x.numpy(), mask=mask)[:, 5] == 0).all()
    with pytest.raises(TypeError, match="out is for arrays of NumPy"):
        shafer.softmax(x, out=x)


def test_errors():
    with pytest.raises(ValueError, match="row 0, column 1: logit is NaN"):
        st.sparsify(torch.tensor([0.0, float("nan")]))
    with pytest.raises(TypeError, match="dense tensor of floating-point type"):
        st.sparsify(torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="must be a tensor"):
        st.sparsify([1.0])
    with pytest.raises(TypeError, match="mask is torch.int64"):
        st.sparsify(torch.zeros(2), mask=torch.ones(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"mask has the shape \[3\]"):
        st.sparsify(torch.zeros(2), mask=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="axis 1 does not exist"):
        st.sparsify(torch.zeros(2), dim=1)
    with pytest.raises(ValueError, match="no such method"):
        st.Sparsify("softmix")


def model():
    torch.manual_seed(0)
    prior = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU())
    prior.linear = torch.nn.Linear(16, 10)
    return torch.nn.ModuleDict({"prior": prior})


def test_heads_of_trained_models():
    net = model()
    x = normal(6, 16, dtype=torch.float32)
    before = net["prior"].linear(x)
    names = list(net.state_dict())
    head = st.sparsify_head(net, "prior.linear")
    after = net["prior"].linear(x)
    torch.testing.assert_close(torch.softmax(after, -1), st.sparsify(before))
    assert list(net.state_dict()) == names and isinstance(net["prior"].linear, torch.nn.Linear)
    copied = copy.deepcopy(net)
    torch.testing.assert_close(copied["prior"].linear(x), after)
    with pytest.raises(ValueError, match="sparse already"):
        st.sparsify_head(net, "prior.linear")
    head.restore()
    head.restore()
    assert torch.equal(net["prior"].linear(x), before)
    with st.sparsify_head(net, "prior.linear", "sparsemax", output="probabilities"):
        torch.testing.assert_close(net["prior"].linear(x), st.sparsify(before, "sparsemax"))
    assert torch.equal(net["prior"].linear(x), before)
    with st.sparsify_head(net, "prior.linear", groups=[5, 5]):
        z = net["prior"].linear(x)
    expected = torch.cat([st.sparse_logits(part) for part in before.split(5, -1)], -1)
    torch.testing.assert_close(z, expected)
    with pytest.raises(ValueError, match="its linear layers are: prior.0, prior.linear"):
        st.sparsify_head(net, "linear")
    with pytest.raises(ValueError, match="no such method"):
        st.sparsify_head(net, "prior.linear", "softmix")
    with pytest.raises(ValueError, match="output is"):
        st.sparsify_head(net, "prior.linear", output="both")
    with st.sparsify_head(net, "prior.linear", groups=[4, 5]), pytest.raises(ValueError, match="must sum to the 10"):
        net["prior"].linear(x)


def test_masks():
    x = normal(3, 4, 5)
    for dim in (0, 1, 2):
        mask = torch.ones(x.shape[dim], dtype=torch.bool)
        mask[0] = False
        p = st.sparsify(x, dim=dim, mask=mask)
        np.testing.assert_array_equal(p.numpy(), shafer.sparsify(x.numpy(), axis=dim, mask=mask.numpy()))
        assert (p.select(dim, 0) == 0).all()
        batched = torch.vmap(lambda x, d=dim, m=mask: st.sparsify(x, dim=d - 3, mask=m))(x.expand(2, 3, 4, 5))
        torch.testing.assert_close(batched[1], p)
    leaf = x.clone().requires_grad_()
    st.sparsify(leaf, "softmax", mask=x > 0)[..., 0].sum().backward()
    assert (leaf.grad[x <= 0] == 0).all()


def test_generation():
    transformers = needs.module("transformers", "torch")
    scores = normal(3, 40, dtype=torch.float32)
    for method in METHODS:
        torch.testing.assert_close(torch.softmax(st.LogitsProcessor(method)(None, scores), -1), st.sparsify(scores, method))
    both = st.LogitsProcessor(["evidential", "min-p:p=0.2", "top-n-sigma"])
    step = st.sparse_logits(st.sparse_logits(st.sparse_logits(scores), "min-p:p=0.2"), "top-n-sigma")
    assert torch.equal(both(None, scores), step)
    with pytest.raises(ValueError, match="methods are empty"):
        st.LogitsProcessor([])
    config = transformers.GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(0)
    net = transformers.GPT2LMHeadModel(config).eval()
    start = torch.tensor([[1, 2, 3]])
    options = {"do_sample": True, "max_new_tokens": 8, "min_new_tokens": 8, "pad_token_id": 0}
    options |= {"output_scores": True, "return_dict_in_generate": True, "attention_mask": torch.ones_like(start)}
    result = net.generate(start, logits_processor=transformers.LogitsProcessorList([both]), **options)
    for token, scores in zip(result.sequences[0, 3:], result.scores):
        assert scores[0, token] > float("-inf")
        assert torch.isinf(scores).sum() >= 32
