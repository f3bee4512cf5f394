//! What the documentation says of the parameters is what the table says.

use sshflow::config::{Kind, Parameter, PARAMETERS};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const START: &str = "<!-- parameters -->\n";
const END: &str = "<!-- end of parameters -->";

fn values(kind: Kind) -> String {
    match kind {
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::AutoOrInteger { min, max } => format!("`auto`, {min} to {max}"),
        Kind::Word(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            quoted.join(", ")
        }
    }
}

fn row(parameter: &Parameter) -> String {
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        parameter.key,
        values(parameter.kind),
        parameter.unit,
        parameter.text(parameter.default),
        parameter.doc
    )
}

fn table() -> String {
    let rows: String = PARAMETERS.iter().map(row).collect();
    format!("| key | values | unit | default | what it does |\n|---|---|---|---|---|\n{rows}")
}

#[test]
fn the_readme_has_the_parameter_table() {
    let readme = std::fs::read_to_string(README).unwrap();
    let (_, rest) = readme.split_once(START).unwrap();
    let (found, _) = rest.split_once(END).unwrap();
    assert!(
        found == table(),
        "run: cargo test --test readme -- --ignored"
    );
}

#[test]
#[ignore = "writes the README's table"]
fn write_the_parameter_table() {
    let readme = std::fs::read_to_string(README).unwrap();
    let (before, rest) = readme.split_once(START).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    std::fs::write(README, format!("{before}{START}{}{END}{after}", table())).unwrap();
}
