//! Powers by an odd modulus, as RSA's public operation needs them: Montgomery's multiplication (Handbook of Applied
//! Cryptography, algorithm 14.36). How long a power takes depends on the exponent, which is public, and not on the base.

/// An odd modulus, and what multiplication by it needs.
pub(super) struct Modulus {
    /// In digits of 64 bits, the lowest first; the highest is not 0.
    digits: Vec<u64>,
    /// -1 / modulus, modulo 2^64.
    inverse: u64,
    /// R² by the modulus, where R is 2^64 to the number of digits.
    square: Vec<u64>,
}

impl Modulus {
    /// Takes a modulus as bytes, the highest first; `None` where it is even, or not above 1.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let mut digits = from_bytes(bytes);
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.first().is_none_or(|lowest| lowest % 2 == 0) || digits == [1] {
            return None;
        }
        // Each round doubles the number of bits that are right.
        let inverse = (0..6).fold(1_u64, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(digits[0].wrapping_mul(inverse)))
        });
        let mut modulus = Self { digits, inverse: inverse.wrapping_neg(), square: Vec::new() };
        let mut square = modulus.number(1);
        for _ in 0..2 * 64 * modulus.digits.len() {
            modulus.double(&mut square);
        }
        modulus.square = square;
        Some(modulus)
    }

    /// A small number in as many digits as the modulus has.
    fn number(&self, small: u64) -> Vec<u64> {
        let mut number = vec![0; self.digits.len()];
        number[0] = small;
        number
    }

    /// Doubles a number that is below the modulus.
    fn double(&self, number: &mut [u64]) {
        let mut carry = 0;
        for digit in number.iter_mut() {
            (*digit, carry) = (*digit << 1 | carry, *digit >> 63);
        }
        self.reduce(number, carry);
    }

    /// Subtracts the modulus from a number with a further digit, where that is not below it.
    fn reduce(&self, number: &mut [u64], further: u64) {
        let mut borrow = false;
        let mut less = number.to_vec();
        for (digit, modulus) in less.iter_mut().zip(&self.digits) {
            let (difference, one) = digit.overflowing_sub(*modulus);
            let (difference, other) = difference.overflowing_sub(u64::from(borrow));
            (*digit, borrow) = (difference, one || other);
        }
        let keep = u64::from(borrow && further == 0).wrapping_neg();
        for (digit, less) in number.iter_mut().zip(less) {
            *digit = (*digit & keep) | (less & !keep);
        }
    }

    /// a · b / R by the modulus; both are below it.
    fn multiply(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let size = self.digits.len();
        let mut sum = vec![0; size + 2];
        for digit in b {
            add_product(&mut sum, a, *digit);
            let factor = sum[0].wrapping_mul(self.inverse);
            add_product(&mut sum, &self.digits, factor);
            // The lowest digit is 0 now.
            sum.rotate_left(1);
        }
        let further = sum[size];
        sum.truncate(size);
        self.reduce(&mut sum, further);
        sum
    }

    /// A base, as bytes that are less than the modulus, to the power of an exponent of 1 or more; in as many bytes.
    pub(super) fn power(&self, base: &[u8], exponent: u64) -> Vec<u8> {
        let mut digits = from_bytes(base);
        digits.resize(self.digits.len(), 0);
        let base_times_r = self.multiply(&digits, &self.square);
        let mut power = base_times_r.clone();
        for bit in (0..exponent.max(1).ilog2()).rev() {
            power = self.multiply(&power, &power);
            if exponent >> bit & 1 == 1 {
                power = self.multiply(&power, &base_times_r);
            }
        }
        to_bytes(&self.multiply(&power, &self.number(1)), base.len())
    }
}

/// Adds a number times a digit to a sum that has two digits more.
fn add_product(sum: &mut [u64], number: &[u64], digit: u64) {
    let mut carry = 0;
    for (place, of) in number.iter().enumerate() {
        let total = u128::from(*of) * u128::from(digit) + u128::from(sum[place]) + u128::from(carry);
        (sum[place], carry) = (total as u64, (total >> 64) as u64);
    }
    let (digit, has_carried) = sum[number.len()].overflowing_add(carry);
    sum[number.len()] = digit;
    sum[number.len() + 1] += u64::from(has_carried);
}

/// Digits of 64 bits, the lowest first, of bytes with the highest first.
fn from_bytes(bytes: &[u8]) -> Vec<u64> {
    let digit = |bytes: &[u8]| bytes.iter().fold(0, |digit, byte| digit << 8 | u64::from(*byte));
    bytes.rchunks(8).map(digit).collect()
}

fn to_bytes(digits: &[u64], size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
    bytes.resize(size, 0);
    bytes.reverse();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rsa::BigUint;

    #[test]
    fn an_even_modulus_and_none_at_all_are_refused() {
        for bytes in [&[][..], &[0], &[1], &[0, 1], &[2], &[1, 0]] {
            assert!(Modulus::new(bytes).is_none(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn powers_are_those_of_another_library(
            mut modulus in prop::collection::vec(any::<u8>(), 1..300), base in prop::collection::vec(any::<u8>(), 300),
            exponent in prop_oneof![Just(1_u64), Just(3), Just(65_537), any::<u64>().prop_map(|n| n.max(1))],
        ) {
            *modulus.last_mut().unwrap() |= 1;
            let Some(own) = Modulus::new(&modulus) else { return Ok(()) };
            let theirs = BigUint::from_bytes_be(&modulus);
            let base = BigUint::from_bytes_be(&base) % &theirs;
            let expected = base.modpow(&exponent.into(), &theirs);
            let mut bytes = base.to_bytes_be();
            let zeros = modulus.len() - bytes.len().min(modulus.len());
            bytes = [vec![0; zeros], bytes].concat();
            prop_assert_eq!(BigUint::from_bytes_be(&own.power(&bytes, exponent)), expected);
        }
    }
}
