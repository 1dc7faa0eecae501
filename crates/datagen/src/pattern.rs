//! Texts that follow a pattern, such as a telephone number's.

/// Writes a text that follows a pattern: `#` becomes a digit, `?` a letter from a to z, `%` takes the character behind
/// it as it is, and so is every other character. `draw` gives a number below the one that it is told, 10 or 26.
///
/// # Errors
/// The pattern ends with `%`.
pub fn write_pattern(
    pattern: &[u8],
    mut draw: impl FnMut(u64) -> u64,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'#' => b'0' + draw(10) as u8,
            b'?' => b'a' + draw(26) as u8,
            b'%' => *bytes.next().ok_or("the pattern ends with %; a % itself is written %%")?,
            other => *other,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pattern: &str) -> Result<String, String> {
        let mut out = Vec::new();
        write_pattern(pattern.as_bytes(), |most| most - 1, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_pattern_is_followed() {
        assert_eq!(written("###-??/ä").unwrap(), "999-zz/ä");
        assert_eq!(written("%#%?%%#").unwrap(), "#?%9");
        assert_eq!(written("").unwrap(), "");
        assert_eq!(written("12%").unwrap_err(), "the pattern ends with %; a % itself is written %%");
    }
}
