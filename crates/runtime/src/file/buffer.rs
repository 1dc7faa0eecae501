//! Memory that may be handed to a file which is read and written without the page cache (`O_DIRECT`).

use std::slice;

/// Where such memory begins, and of what it is a multiple; enough for every disk.
pub const ALIGNMENT: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; ALIGNMENT]);

/// A buffer of whole pages.
#[derive(Clone, Default)]
pub struct Aligned(Vec<Page>);

impl Aligned {
    /// A buffer for at least so many bytes, all 0.
    #[must_use]
    pub fn with_bytes(bytes: usize) -> Self {
        Self(vec![Page([0; ALIGNMENT]); bytes.div_ceil(ALIGNMENT)])
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() * ALIGNMENT
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: pages are bytes without gaps, one behind the other.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), self.len()) }
    }

    /// Its bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else holds them.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.len()) }
    }
}
