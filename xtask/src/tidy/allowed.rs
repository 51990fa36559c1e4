//! What was there before its rule, and may only shrink.
//!
//! Input: shapes, and the list of exceptions. Output: findings for what is not excepted, for
//! exceptions that have grown, and for those that nothing needs any more.

use super::Finding;
use super::shape::Shape;

/// A file, a rule, the function for `function-length` (else empty), and the size let pass: the
/// lines of the file or function, or how many lines are too long.
pub(crate) type Allowance = (&'static str, &'static str, &'static str, usize);

/// Lower the numbers and strike off lines as you mend; never add a line or raise a number.
pub(crate) const SHAPES: &[Allowance] = &[];

pub(crate) fn apply(shapes: Vec<Shape>, allowances: &[Allowance]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let matches = |shape: &Shape, (file, rule, name, _): &Allowance| {
        shape.file == *file && shape.rule == *rule && shape.name == *name
    };
    for allowance in allowances {
        let (file, rule, _, size) = *allowance;
        let found = shapes.iter().filter(|shape| matches(shape, allowance));
        let found: usize = found.map(|shape| shape.size).sum();
        let text = match found {
            found if found > size => format!(
                "has grown from {size} to {found}: bring it below what \
                 xtask/src/tidy/allowed.rs lets pass"
            ),
            0 => "needs no exception any more: strike it off xtask/src/tidy/allowed.rs".to_owned(),
            _ => continue,
        };
        findings.push(Finding { file: file.to_owned(), line: 0, rule, text });
    }
    let free = |shape: &Shape| !allowances.iter().any(|allowance| matches(shape, allowance));
    findings.extend(shapes.into_iter().filter(free).map(|shape| {
        let Shape { file, line, rule, text, .. } = shape;
        Finding { file, line, rule, text }
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(file: &str, size: usize) -> Shape {
        let (file, text) = (file.to_owned(), "too long".to_owned());
        Shape { file, line: 7, rule: "file-length", name: String::new(), size, text }
    }

    #[test]
    fn an_exception_is_a_limit_and_ends_with_its_need() {
        let allowances: &[Allowance] = &[("old.rs", "file-length", "", 700)];
        for (size, said) in [(700, None), (601, None), (701, Some("grown"))] {
            let found = apply(vec![shape("old.rs", size)], allowances);
            assert_eq!(found.len(), usize::from(said.is_some()), "{size}: {found:?}");
            assert!(found.iter().all(|f| f.text.contains(said.unwrap())));
        }
        assert!(apply(vec![], allowances)[0].text.contains("strike it off"));
        let found = apply(vec![shape("old.rs", 700), shape("new.rs", 601)], allowances);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].file.as_str(), found[0].line), ("new.rs", 7));
    }
}
