//! The head of a small model, saved in every format (`fixtures/make_models.py`).

use std::path::PathBuf;

use shafer_data::{ModelFile, Orientation, heads, load_head};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The contents of `tiny.json`.
struct Expected {
    features: Vec<Vec<f32>>,
    /// J x K.
    weights: Vec<Vec<f32>>,
    bias: Vec<f32>,
    logits: Vec<Vec<f32>>,
}

fn expected() -> Expected {
    let text = std::fs::read_to_string(fixture("tiny.json")).expect("reads");
    let json: serde_json::Value = serde_json::from_str(&text).expect("parses");
    let row = |v: &serde_json::Value| -> Vec<f32> {
        v.as_array().expect("row").iter().map(|x| x.as_f64().expect("number") as f32).collect()
    };
    let matrix = |v: &serde_json::Value| v.as_array().expect("matrix").iter().map(row).collect();
    Expected {
        features: matrix(&json["features"]),
        weights: matrix(&json["weights"]),
        bias: row(&json["bias"]),
        logits: matrix(&json["logits"]),
    }
}

/// Every format gives the same weights, and with them the logits of the model itself.
#[test]
fn one_head_in_every_format() {
    let expected = expected();
    for (file, name) in [
        ("tiny.pt", None),
        ("tiny.pt", Some("head")),
        ("tiny.safetensors", None),
        ("tiny.safetensors", Some("head.weight")),
        ("tiny.onnx", None),
        ("tiny.onnx", Some("head")),
        ("matmul.onnx", Some("w")),
        ("nested.pt", None),
        ("module.pt", None),
        ("views.pt", Some("transposed.weight")),
        ("conv.onnx", None),
        ("matmul.onnx", None),
        ("scaled.onnx", None),
        ("external.onnx", None),
    ] {
        let head = load_head(fixture(file), name).expect(file);
        assert_eq!((head.features, head.classes), (8, 5), "{file}");
        assert_eq!(head.weights, expected.weights.concat(), "{file}");
        let bias = head.bias.expect(file);
        assert_eq!(bias, expected.bias, "{file}");
        for (features, logits) in expected.features.iter().zip(&expected.logits) {
            for (k, &logit) in logits.iter().enumerate() {
                let products = (0..8).map(|j| features[j] * head.weights[j * 5 + k]);
                let sum = products.sum::<f32>() + bias[k];
                assert!((sum - logit).abs() < 1e-6, "{file}: {sum} for {logit}");
            }
        }
    }
}

#[test]
fn narrower_and_wider_floats() {
    let expected: Vec<f32> = expected().weights.concat();
    for (name, tolerance) in [("half.weight", 2e-4), ("brain.weight", 2e-3), ("double.weight", 0.0)]
    {
        let head = load_head(fixture("views.pt"), Some(name)).expect(name);
        assert_eq!(head.bias, None);
        for (a, b) in head.weights.iter().zip(&expected) {
            assert!((a - b).abs() <= tolerance, "{name}: {a} for {b}");
        }
    }
}

#[test]
fn values_in_the_fields_of_their_type() {
    let mut model = ModelFile::open(fixture("types.onnx")).expect("opens");
    for (name, dtype) in [
        ("half", "f16"),
        ("brain", "bf16"),
        ("single", "f32"),
        ("double", "f64"),
        ("constant", "f32"),
    ] {
        let info = model.tensors().iter().find(|t| t.name == name).expect(name);
        assert_eq!((info.dtype.as_str(), &info.shape[..]), (dtype, &[2, 3][..]));
        assert_eq!(model.load(name).expect(name), [1.0, -2.0, 3.0, 4.0, 5.0, 6.5], "{name}");
    }
    let error = ModelFile::open(fixture("views.pt")).and_then(|mut m| m.load("counts"));
    let error = error.expect_err("whole numbers").to_string();
    assert!(
        error
            .ends_with("tensor `counts` is of type i64; only f16, bf16, f32 and f64 can be loaded")
    );
}

#[test]
fn tensors_are_listed() {
    let list = |file: &str| -> Vec<String> {
        let model = ModelFile::open(fixture(file)).expect(file);
        model.tensors().iter().map(|t| format!("{} {} {:?}", t.name, t.dtype, t.shape)).collect()
    };
    let tiny = [
        "hidden.weight f32 [8, 6]",
        "hidden.bias f32 [8]",
        "head.weight f32 [5, 8]",
        "head.bias f32 [5]",
    ];
    for file in ["tiny.pt", "nested.pt", "tiny.onnx"] {
        assert_eq!(list(file), tiny, "{file}");
    }
    // In the order of its data.
    let mut sorted = tiny;
    sorted.sort_unstable();
    assert_eq!(list("tiny.safetensors"), sorted);
    assert_eq!(
        list("views.pt"),
        [
            "transposed.weight f32 [5, 8]",
            "transposed.bias f32 [5]",
            "half.weight f16 [5, 8]",
            "brain.weight bf16 [5, 8]",
            "double.weight f64 [5, 8]",
            "counts i64 [4]",
        ]
    );
}

#[test]
fn candidates_say_why() {
    let of = |file: &str| -> Vec<String> {
        heads(fixture(file)).expect(file).iter().map(|c| format!("{c}: {}", c.reason)).collect()
    };
    assert_eq!(
        of("tiny.pt"),
        [
            "head.weight (8 features, 5 classes): its name says so, and a bias is beside it",
            "hidden.weight (6 features, 8 classes): a bias is beside it",
        ]
    );
    assert_eq!(
        of("tiny.onnx"),
        ["head.weight (8 features, 5 classes): its Gemm feeds the output `linear_1`"]
    );
    assert_eq!(of("conv.onnx"), ["w (8 features, 5 classes): its Conv feeds the output `y`"]);
    assert_eq!(of("gate.onnx"), ["w (8 features, 5 classes): its MatMul feeds the Softmax `gate`"]);
    let scaled = &heads(fixture("scaled.onnx")).expect("reads")[0];
    assert_eq!(scaled.orientation, Orientation::FeaturesByClasses);
    let matmul = &heads(fixture("matmul.onnx")).expect("reads")[0];
    assert_eq!(matmul.orientation, Orientation::ClassesByFeatures);
}

/// A `.safetensors` file of zeros.
fn zeros(tensors: &[(&str, &[usize])]) -> (tempfile::TempDir, PathBuf) {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, shape) in tensors {
        let begin = end;
        end += 4 * shape.iter().product::<usize>();
        let entry =
            serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]});
        header.insert((*name).to_owned(), entry);
    }
    let header = serde_json::to_vec(&header).expect("writes");
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.resize(bytes.len() + end, 0);
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, bytes).expect("writes");
    (folder, path)
}

#[test]
fn both_orientations_by_the_bias() {
    let (_folder, path) = zeros(&[
        ("a.weight", &[3, 7]),
        ("a.bias", &[3]),
        ("b.weight", &[3, 7]),
        ("b.bias", &[7]),
        ("c.weight", &[4, 4]),
        ("c.bias", &[4]),
        ("d.weight", &[4, 5]),
        ("d.bias", &[6]),
        ("e.weight", &[3, 7, 1, 1]),
        ("e.bias", &[3]),
        ("embedding.weight", &[9, 9]),
    ]);
    let found: Vec<_> = heads(&path)
        .expect("reads")
        .into_iter()
        .map(|c| (c.weight, c.features, c.classes, c.orientation))
        .collect();
    let expect = |name: &str, j, k, o| (name.to_owned(), j, k, o);
    assert_eq!(
        found,
        [
            expect("e.weight", 7, 3, Orientation::ClassesByFeatures),
            expect("c.weight", 4, 4, Orientation::ClassesByFeatures),
            expect("b.weight", 3, 7, Orientation::FeaturesByClasses),
            expect("a.weight", 7, 3, Orientation::ClassesByFeatures),
        ]
    );
    let error = load_head(&path, Some("d")).expect_err("does not fit").to_string();
    assert!(error.contains("`d.weight` of shape [4, 5] does not fit its bias"), "{error}");
    let head = load_head(&path, Some("embedding.weight")).expect("was named");
    assert_eq!((head.features, head.bias), (9, None));
}

#[test]
fn one_is_picked_when_only_one_can_be_meant() {
    // The only layer, whatever its name.
    let (_folder, path) = zeros(&[("x.weight", &[3, 7]), ("x.bias", &[3])]);
    assert_eq!(load_head(&path, None).expect("one").features, 7);
    // The last layer of a sequence with matching sizes.
    let (_folder, path) = zeros(&[
        ("net.10.weight", &[2, 5]),
        ("net.10.bias", &[2]),
        ("net.8.weight", &[5, 7]),
        ("net.8.bias", &[5]),
    ]);
    assert_eq!(load_head(&path, None).expect("a sequence").classes, 2);
    // Two layers with names of heads.
    let (_folder, path) = zeros(&[
        ("a_head.weight", &[2, 5]),
        ("a_head.bias", &[2]),
        ("b_head.weight", &[3, 5]),
        ("b_head.bias", &[3]),
    ]);
    let error = load_head(&path, None).expect_err("ambiguous").to_string();
    assert!(
        error.contains(
            "several layers may be the head: b_head.weight (5 features, 3 classes), \
             a_head.weight (5 features, 2 classes); name one, such as "
        ) && error.ends_with("m.safetensors:b_head.weight"),
        "{error}"
    );
    let error = load_head(&path, Some("c")).expect_err("no such").to_string();
    assert!(error.contains("no tensor is named `c`; heads may be b_head.weight"), "{error}");
}
