//! The latency table of the tools before asbench: `--latency COLUMNS,SHIFT[,UNIT]`.
//!
//! In: the value and the generation. Out: what the limits are. Source: the C client's and the Java
//! client's benchmarks. Limits hold exactly: the C tool cut times to whole milliseconds first, so
//! that 1.9 ms were not above 1 ms. What the patched tool does with a shift other than 4 is not
//! published; it is read as powers of two of microseconds.

use super::generation::Generation;
use super::line::LineError;

/// Width of the columns of the patched tool, in microseconds.
const WIDTH_US: u32 = 40;
/// The shift that stands for them.
const LINEAR: u32 = 4;

/// What is shown of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyShown {
    /// Nothing.
    Nothing,
    /// A table each second.
    Table(Table),
    /// Percentiles since the start.
    Percentiles,
}

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// How many.
    pub columns: u32,
    /// Where their limits are.
    pub limits: Limits,
    /// Decimals of the shares.
    pub decimals: usize,
    /// A last table over the whole run is printed.
    pub summary: bool,
}

/// Limits of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// 1, shifted left again and again.
    Shifted {
        /// So far.
        shift: u32,
        /// In microseconds instead of milliseconds.
        micros: bool,
    },
    /// Steps of so many microseconds.
    Linear {
        /// Width of a column.
        width_us: u32,
    },
}

/// Reads the value of `--latency`, and what there is to say of it.
pub(super) fn table(
    text: &str,
    generation: Generation,
) -> Result<(Table, Option<String>), LineError> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let refuse = |cure: &str| LineError::new(format!("--latency {text}"), cure);
    let form = || refuse("is no table: write COLUMNS,SHIFT, as in 7,1");
    let number = |text: &str| text.parse::<u32>().map_err(|_| form());
    let (columns, shift, unit) = match parts[..] {
        // Without a comma the C tool had its default.
        [_] => (4, 3, None),
        [columns, shift] => (number(columns)?, number(shift)?, None),
        [columns, shift, unit] => (number(columns)?, number(shift)?, Some(unit)),
        _ => return Err(form()),
    };
    let micros = match (unit, generation) {
        (Some("us" | "u"), Generation::Java | Generation::Patched) => true,
        (Some("ms"), Generation::Java) => false,
        (Some(_), Generation::Java) => return Err(refuse("has a unit other than us and ms")),
        (Some(_), Generation::Patched) => return Err(refuse("has a unit other than us and u")),
        (Some(_), _) => return Err(refuse("has a unit, which this generation has not")),
        (None, Generation::LegacyUsec | Generation::Patched) => true,
        (None, _) => false,
    };
    let is_patched = generation == Generation::Patched;
    let most = if is_patched { 100 } else { 16 };
    if !(2..=most).contains(&columns) {
        return Err(refuse(&format!("has a number of columns that is not from 2 to {most}")));
    }
    if !(1..=5).contains(&shift) {
        return Err(refuse("has a shift that is not from 1 to 5"));
    }
    let limits = match is_patched && shift == LINEAR {
        true => Limits::Linear { width_us: WIDTH_US },
        false => Limits::Shifted { shift, micros },
    };
    let notice = match (generation, limits) {
        (Generation::Patched, Limits::Linear { .. }) => Some(format!(
            "{columns} columns in steps of {WIDTH_US} us with a decimal: inferred, for the patch \
             is not published."
        )),
        (Generation::Patched, Limits::Shifted { .. }) => Some(
            "Limits are powers of two of microseconds: inferred, for the patch is not published."
                .to_owned(),
        ),
        (Generation::Legacy, _) => Some(
            "Limits hold exactly: the original cuts times to whole milliseconds first, so that \
             1.9 ms are not above 1 ms."
                .to_owned(),
        ),
        _ => None,
    };
    let decimals = usize::from(is_patched);
    Ok((Table { columns, limits, decimals, summary: generation == Generation::Java }, notice))
}
