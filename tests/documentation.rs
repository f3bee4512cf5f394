//! What the README and the manual page say of the parameters is what the table
//! in the source says.

use sshflow::config::{Kind, Parameter, PARAMETERS};

/// A document that holds the table between two marks.
struct Document {
    path: &'static str,
    start: &'static str,
    end: &'static str,
    table: fn() -> String,
}

const DOCUMENTS: [Document; 2] = [
    Document {
        path: concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"),
        start: "<!-- parameters -->\n",
        end: "<!-- end of parameters -->",
        table: markdown_table,
    },
    Document {
        path: concat!(env!("CARGO_MANIFEST_DIR"), "/man/sshflow.3"),
        start: ".\\\" parameters\n",
        end: ".\\\" end of parameters",
        table: manual_list,
    },
];

impl Document {
    /// What stands before the table, the table, and what stands behind it.
    fn split(&self) -> [String; 3] {
        let text = std::fs::read_to_string(self.path).unwrap();
        let (before, rest) = text.split_once(self.start).unwrap();
        let (table, after) = rest.split_once(self.end).unwrap();
        [before, table, after].map(str::to_owned)
    }
}

fn markdown_values(kind: Kind) -> String {
    match kind {
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::AutoOrInteger { min, max } => format!("`auto`, {min} to {max}"),
        Kind::Word(words) => {
            let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            quoted.join(", ")
        }
    }
}

fn markdown_row(parameter: &Parameter) -> String {
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        parameter.key,
        markdown_values(parameter.kind),
        parameter.unit,
        parameter.text(parameter.default),
        parameter.doc
    )
}

fn markdown_table() -> String {
    let rows: String = PARAMETERS.iter().map(markdown_row).collect();
    format!("| key | values | unit | default | what it does |\n|---|---|---|---|---|\n{rows}")
}

/// A minus sign that is no hyphen, as manual pages want it.
fn manual_number(number: i64) -> String {
    number.to_string().replace('-', "\\-")
}

fn manual_values(parameter: &Parameter) -> String {
    let range = |min, max| format!("{} to {}", manual_number(min), manual_number(max));
    match parameter.kind {
        Kind::Integer { min, max } => format!("{} {}", range(min, max), parameter.unit),
        Kind::AutoOrInteger { min, max } => format!("auto, or {}", range(min, max)),
        Kind::Word(words) => words.join(" or "),
    }
}

/// Breaks text into lines that the manual's style allows.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 {
            let fits = column + 1 + word.len() <= 79;
            lines.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        lines.push_str(word);
        column += word.len();
    }
    lines
}

/// An item of the list: one line of macros, and sentences on lines of their own.
fn manual_item(parameter: &Parameter) -> String {
    let mut doc = parameter.doc.to_owned();
    doc[..1].make_ascii_uppercase();
    format!(
        ".It Cm {}\n{}.\n{}; default: {}.\n",
        parameter.key,
        wrapped(&doc),
        manual_values(parameter),
        parameter.text(parameter.default).replace('-', "\\-")
    )
}

fn manual_list() -> String {
    let items: String = PARAMETERS.iter().map(manual_item).collect();
    format!(".Bl -tag -width Ds\n{items}.El\n")
}

#[test]
fn documents_have_the_parameter_table() {
    for document in &DOCUMENTS {
        let [_, found, _] = document.split();
        assert!(
            found == (document.table)(),
            "{} is out of date; run: cargo test --test documentation -- --ignored",
            document.path
        );
    }
}

#[test]
#[ignore = "writes the tables into README and manual page"]
fn write_the_parameter_table() {
    for document in &DOCUMENTS {
        let [before, _, after] = document.split();
        let table = (document.table)();
        let Document { start, end, .. } = document;
        std::fs::write(
            document.path,
            [&before, *start, &table, end, &after].concat(),
        )
        .unwrap();
    }
}
