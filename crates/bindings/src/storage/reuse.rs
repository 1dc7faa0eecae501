//! Miss-ratio curves of requests. Columns come in as bytes of their native numbers, as numpy's `tobytes` gives them.

use nephoscope_storage::{MissRatioCurve, ReuseDistances};
use pyo3::prelude::*;

use crate::errors;

/// A curve: its points (bytes of cache, miss ratio, standard error), then accesses to pages, how many of them were
/// sampled, and the number of different pages.
type Curve = (Vec<(u64, f64, f64)>, u64, u64, f64);

/// The miss-ratio curve of an LRU cache under requests in the order of time, given as columns `segment` (u32), `offset`
/// (u64) and `length` (u32, bytes). `rate` is the share of the pages that are counted; at 1 the curve is exact. Raises
/// `InputError` for columns of different lengths.
#[pyfunction]
pub(crate) fn storage_miss_ratios(
    py: Python<'_>,
    segment: &[u8],
    offset: &[u8],
    length: &[u8],
    page_bytes: u32,
    rate: f64,
) -> PyResult<Curve> {
    let (segment, _) = segment.as_chunks::<4>();
    let (offset, _) = offset.as_chunks::<8>();
    let (length, _) = length.as_chunks::<4>();
    if segment.len() != offset.len() || segment.len() != length.len() {
        return Err(errors::input(py, "the columns of requests differ in length"));
    }
    let curve = py.detach(|| {
        let mut distances = ReuseDistances::new(page_bytes, rate);
        for ((segment, offset), length) in segment.iter().zip(offset).zip(length) {
            distances.request(
                u32::from_ne_bytes(*segment),
                u64::from_ne_bytes(*offset),
                u32::from_ne_bytes(*length),
            );
        }
        distances.curve()
    });
    let MissRatioCurve { points, accesses, sampled, pages } = curve;
    let points =
        points.iter().map(|point| (point.cache_bytes, point.miss_ratio, point.standard_error)).collect();
    Ok((points, accesses, sampled, pages))
}
