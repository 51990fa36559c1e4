//! The machine's own spin jitter: how late a plain poll loop is at moments of a schedule.
//!
//! Input: `CPU RATE_PER_S SECONDS`. Output: one line of JSON, microseconds. What no client on that
//! cpu can be better than; `cargo xtask bench-lag` runs it beside wideload.

use drive::Wait;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use units::{CpuId, Nanos};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: spin_jitter CPU RATE_PER_S SECONDS";
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|a| a.parse()).collect();
    let [cpu, rate_s, seconds] = numbers.map_err(|_| usage)?[..] else {
        return Err(usage.into());
    };
    let gap_ns = 1_000_000_000u64.checked_div(rate_s).ok_or(usage)?;
    let (gap, length) = (Nanos(gap_ns), Nanos::from_secs(seconds));
    let running = AtomicBool::new(false);
    let late = drive::jitter(CpuId(u32::try_from(cpu)?), Wait::Spin, gap, length, &running)?;
    let us = |nanos: Nanos| nanos.0 as f64 / 1e3;
    println!(
        "{{\"count\": {}, \"p50_us\": {:.3}, \"p99_us\": {:.3}, \"p999_us\": {:.3}, \"max_us\": \
         {:.3}}}",
        late.count(),
        us(late.quantile(0.5)),
        us(late.quantile(0.99)),
        us(late.quantile(0.999)),
        us(late.max())
    );
    Ok(())
}
