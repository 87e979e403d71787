//! Linear layers in ONNX graphs, against the logits of onnxruntime (`fixtures/make_graphs.py`).

use std::path::PathBuf;

use serde_json::Value;
use shafer_data::{BiasChoice, Doubt, HeadRequest, HeadWeights, Orientation, heads, load_head};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn graph(name: &str) -> PathBuf {
    fixture("graphs").join(name).with_extension("onnx")
}

fn matrix(json: &Value) -> Vec<Vec<f32>> {
    let number = |x: &Value| x.as_f64().expect("a number") as f32;
    let row = |row: &Value| row.as_array().expect("a row").iter().map(number).collect();
    json.as_array().expect("a matrix").iter().map(row).collect()
}

fn expected() -> Value {
    let text = std::fs::read_to_string(fixture("graphs.json")).expect("reads");
    serde_json::from_str(&text).expect("parses")
}

/// The largest difference between the logits of a head and the expected ones; infinite if sizes differ or a
/// difference is NaN.
fn difference(head: &HeadWeights, features: &[Vec<f32>], logits: &[Vec<f32>]) -> f32 {
    assert_eq!((features.len(), logits.len()), (4, 4), "rows of the fixture");
    let mut largest = 0_f32;
    for (features, logits) in features.iter().zip(logits) {
        if (features.len(), logits.len()) != (head.features, head.classes) {
            return f32::INFINITY;
        }
        for (k, logit) in logits.iter().enumerate() {
            let weights = head.weights.iter().skip(k).step_by(head.classes);
            let product: f32 = features.iter().zip(weights).map(|(x, w)| x * w).sum();
            let found = product + head.bias.as_ref().map_or(0.0, |bias| bias[k]);
            let difference = (found - logit).abs();
            largest = if difference.is_nan() { f32::INFINITY } else { largest.max(difference) };
        }
    }
    largest
}

fn complaint(graph_name: &str, request: HeadRequest<'_>) -> String {
    let path = graph(graph_name);
    let error = request.load(&path).expect_err(graph_name).to_string();
    error.strip_prefix(&format!("{}: ", path.display())).expect("names the file").to_owned()
}

fn named(name: &str) -> HeadRequest<'_> {
    HeadRequest { name: Some(name), ..HeadRequest::default() }
}

#[test]
fn layers_have_the_logits_of_onnxruntime() {
    let expected = expected();
    let features = matrix(&expected["features"]);
    let graphs = expected["graphs"].as_object().expect("graphs");
    assert_eq!(graphs.len(), 31);
    for (name, layer) in graphs {
        let head = load_head(graph(name), layer["weight"].as_str()).expect(name);
        let difference = difference(&head, &features, &matrix(&layer["logits"]));
        assert!(difference < 1e-5, "{name}: {difference}");
    }
}

#[test]
fn what_the_graph_does_not_tell_is_asked_for() {
    let ask = "; give --transpose if its rows are features (--transpose=false if they are classes) \
               and --bias NAME (or --bias none)";
    for (name, problem) in [
        ("gathered", "no Gemm, MatMul or Conv multiplies by `W`"),
        ("tied", "`W` is used by the Gemm `y`, in another way than by the MatMul `product`"),
        ("two_biases", "`W` is used by the MatMul `product`, which has two biases"),
        (
            "with_and_without",
            "`W` is used by the MatMul `product`, whose result is used both with and without an \
             Add behind it",
        ),
        ("computed_bias", "`W` is used by the MatMul `product`, whose bias is computed"),
        ("trans_a", "`W` is used by the Gemm `p`, which transposes its features (transA)"),
    ] {
        let request = named("W");
        assert_eq!(complaint(name, request), format!("{problem}{ask}"));
        // The bias alone is not sufficient: the matrix is square.
        let half = HeadRequest { bias: BiasChoice::None, ..request };
        assert_eq!(complaint(name, half), format!("{problem}{ask}"));
        let half = HeadRequest { orientation: Some(Orientation::FeaturesByClasses), ..request };
        assert_eq!(complaint(name, half), format!("{problem}{ask}"));
        let whole = HeadRequest { bias: BiasChoice::None, ..half };
        assert_eq!(whole.load(graph(name)).expect(name).bias, None);
    }
}

/// The request overrides the graph.
#[test]
fn what_is_said_by_hand() {
    let weights = |name, orientation, bias| {
        let request = HeadRequest { name: Some("W"), orientation, bias };
        request.load(graph(name)).expect(name)
    };
    let known = weights("matmul_square_bias", None, BiasChoice::Known);
    let by_class = Some(Orientation::ClassesByFeatures);
    let other = weights("matmul_square_bias", by_class, BiasChoice::Known);
    let transposed: Vec<f32> = (0..16).map(|i| known.weights[i % 4 * 4 + i / 4]).collect();
    assert_ne!(transposed, known.weights);
    assert_eq!((&other.weights, &other.bias), (&transposed, &known.bias));
    let other = weights("matmul_square_bias", None, BiasChoice::None);
    assert_eq!((other.weights, other.bias), (known.weights, None));
    let other =
        weights("two_biases", Some(Orientation::FeaturesByClasses), BiasChoice::Tensor("b"));
    assert!(other.bias.is_some());

    let request = HeadRequest { bias: BiasChoice::Tensor("c"), ..named("W") };
    assert_eq!(complaint("gemm_oblong", request), "no tensor is named `c`, as the bias is");
    let request = HeadRequest { bias: BiasChoice::Tensor("V"), ..named("W") };
    let misfit = complaint("gemm_oblong", request);
    assert!(misfit.starts_with("`W` of shape [4, 5] does not fit its bias `V`, "), "{misfit}");

    // The same for a file without a graph.
    for file in ["tiny.pt", "tiny.safetensors"] {
        let request = HeadRequest { bias: BiasChoice::Tensor("hidden.bias"), ..named("head") };
        let head = request.load(fixture(file)).expect(file);
        assert_eq!((head.features, head.classes), (5, 8), "the bias has 8 numbers");
        let orientation = Some(Orientation::FeaturesByClasses);
        let request = HeadRequest { orientation, bias: BiasChoice::None, ..request };
        let turned = request.load(fixture(file)).expect(file);
        assert_eq!((turned.features, turned.bias), (5, None));
        assert_eq!(turned.weights, head.weights);
        let request = HeadRequest { orientation, ..named("head") };
        let error = request.load(fixture(file)).expect_err("5 numbers for 8 classes").to_string();
        assert!(error.contains("does not fit its bias `head.bias`"), "{error}");
    }
}

#[test]
fn quantised_operators_are_refused_by_name() {
    for (name, operator) in [
        ("matmul_integer", "the MatMulInteger `product`"),
        ("qlinear_matmul", "the QLinearMatMul `product`"),
        ("qgemm", "the QGemm `product`"),
        ("dequantised", "the DequantizeLinear `weights`"),
    ] {
        let why = format!(
            "{operator}, a quantised operator, which is not computed; export the model without \
             quantisation"
        );
        let found = complaint(name, HeadRequest::default());
        assert_eq!(found, format!("no head found: the output `y` is made by {why}"));
        let error = heads(graph(name)).expect_err(name).to_string();
        assert!(error.ends_with(&found), "{error}");
        assert_eq!(complaint(name, named("Wq")), format!("`Wq` is used by {why}"));
    }
}

#[test]
fn outputs_that_are_no_classes() {
    let of = |name: &str| -> Vec<String> {
        let heads = heads(graph(name)).expect(name);
        let line = |c: &shafer_data::HeadCandidate| format!("{c}: {} {:?}", c.reason, c.doubt);
        heads.iter().map(line).collect()
    };
    let feeds = "its Gemm feeds the output";
    assert_eq!(of("one_value"), [format!("W (4 features, 1 value): {feeds} `y` Some(OneValue)")]);
    assert_eq!(
        of("three_values"),
        ["W (4 features, 3 values): its MatMul feeds the output `sum` Some(FewValues)"]
    );
    assert_eq!(
        of("gated"),
        ["W (4 features, 4 classes): its MatMul feeds the Softmax `p` Some(Inside)"]
    );
    assert_eq!(
        of("policy_and_value"),
        [
            format!("U (4 features, 1 value): {feeds} `value` Some(OneValue)"),
            format!("W (4 features, 4 classes): {feeds} `policy` None"),
        ]
    );
    for (name, layer, doubt) in [
        ("one_value", "W (4 features, 1 value)", Doubt::OneValue),
        ("three_values", "W (4 features, 3 values)", Doubt::FewValues),
        ("gated", "W (4 features, 4 classes)", Doubt::Inside),
    ] {
        let found = complaint(name, HeadRequest::default());
        let start = format!(
            "no layer is clearly the head, but these may be: {layer}; W {doubt}; if it is meant, \
             name it: "
        );
        assert!(found.starts_with(&start), "{found}");
        load_head(graph(name), Some("W")).expect("was named");
    }
    let found = complaint("encoder", HeadRequest::default());
    assert_eq!(
        found,
        "no head found: the output `y` is made by the LayerNormalization `y`, which is no linear \
         layer; if the model has a head, name its weights, such as FILE:head.weight (shafer heads \
         --all lists all tensors)"
    );
    // A tensor added to probabilities is no bias of the logits.
    assert_eq!(of("added_to_softmax").len(), 1);
    assert_eq!(load_head(graph("added_to_softmax"), Some("W")).expect("was named").bias, None);
}
