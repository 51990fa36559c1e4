//! Figures as text: the three exporters.
//!
//! Source: the exporters of YCSB; their JSON is that of Jackson's default pretty printer.

use super::figures::{Figure, Number};
use super::java;
use std::fmt::Write as _;
use workload::ycsb::Exporter;

/// All figures in the form of an exporter.
#[must_use]
pub fn export(exporter: Exporter, figures: &[Figure]) -> String {
    match exporter {
        Exporter::Text => figures.iter().map(line).collect(),
        Exporter::Json => figures.iter().map(object).collect::<Vec<_>>().join(" "),
        Exporter::JsonArray => {
            let objects: Vec<_> = figures.iter().map(object).collect();
            format!("[ {} ]", objects.join(", "))
        }
    }
}

fn line(figure: &Figure) -> String {
    let value = match figure.value {
        Number::Whole(number) => number.to_string(),
        Number::Double(number) => java::double(number),
    };
    format!("[{}], {}, {value}\n", figure.metric, figure.measurement)
}

fn object(figure: &Figure) -> String {
    let value = match figure.value {
        Number::Whole(number) => number.to_string(),
        Number::Double(number) if number.is_finite() => java::double(number),
        Number::Double(number) => quoted(&java::double(number)),
    };
    format!(
        "{{\n  \"metric\" : {},\n  \"measurement\" : {},\n  \"value\" : {value}\n}}",
        quoted(&figure.metric),
        quoted(&figure.measurement)
    )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c < ' ' => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Vec<Figure> {
        vec![
            Figure::whole("OVERALL", "RunTime(ms)", 1234),
            Figure::double("READ", "AverageLatency(us)", 12.5),
            Figure::double("READ", "x", f64::NAN),
        ]
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(
            export(Exporter::Text, &figures()),
            "[OVERALL], RunTime(ms), 1234\n[READ], AverageLatency(us), 12.5\n[READ], x, NaN\n"
        );
        let one = "{\n  \"metric\" : \"OVERALL\",\n  \
                   \"measurement\" : \"RunTime(ms)\",\n  \"value\" : 1234\n}";
        let json = export(Exporter::Json, &figures());
        assert!(json.starts_with(&format!("{one} {{\n")), "{json}");
        let array = export(Exporter::JsonArray, &figures());
        assert!(
            array.starts_with(&format!("[ {one}, {{\n")) && array.ends_with("\n} ]"),
            "{array}"
        );
        let read: Vec<serde_json::Value> = serde_json::from_str(&array).unwrap();
        assert_eq!(read[1]["value"], 12.5);
        assert_eq!(read[2]["value"], "NaN");
        let stream = serde_json::Deserializer::from_str(&json).into_iter::<serde_json::Value>();
        assert_eq!(stream.map(|value| value.unwrap()).collect::<Vec<_>>(), read);
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
    }
}
