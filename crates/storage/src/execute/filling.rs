//! What is written to targets.

/// Fills memory with bytes that no disk can pack.
pub(crate) fn randomise(bytes: &mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes.len() as u64;
    for word in bytes.chunks_mut(8) {
        // xorshift64: not for anything but looks.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
}
