//! How many requests a second go into a miss-ratio curve on one core, exact and sampled.
//! `reuse [REQUESTS] [PAGES]`; a page's probability falls with its number: P(page < n) = (n / pages)^0.3.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use nephoscope_storage::ReuseDistances;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut given = std::env::args().skip(1);
    let requests: usize = given.next().as_deref().map_or(Ok(20_000_000), str::parse)?;
    let pages: f64 = given.next().as_deref().map_or(Ok(4e6), str::parse)?;
    let offsets = drawn(requests, pages);
    for rate in [1.0, 0.1, 0.01, 0.001] {
        let began = Instant::now();
        let mut distances = ReuseDistances::new(8192, rate);
        for offset in &offsets {
            distances.request(0, *offset, 8192);
        }
        let curve = distances.curve();
        let seconds = began.elapsed().as_secs_f64();
        let worst = curve.points.iter().map(|point| point.standard_error).fold(0.0, f64::max);
        println!(
            "rate {rate}: {:.1} M requests/s; {} sampled, {:.0} pages, {} points, standard error up to {worst:.4}",
            requests as f64 / seconds / 1e6,
            curve.sampled,
            curve.pages,
            curve.points.len(),
        );
    }
    Ok(())
}

fn drawn(requests: usize, pages: f64) -> Vec<u64> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..requests).map(|_| (uniform().powf(1.0 / 0.3) * pages) as u64 * 8192).collect()
}
