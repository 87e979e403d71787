#[test]
#[ignore]
fn write_stand_in() {
    let p = shafer_nets::behaviour::Predictor::untrained(&shafer_nets::behaviour::NetworkConfig::default(), 0).unwrap();
    std::fs::write("weights/behaviour.safetensors", p.to_safetensors(shafer_nets::Precision::Half).unwrap()).unwrap();
}
