//! Raises a number to a public power modulo an odd number, as checking an RSA signature requires. Nothing here is secret, so the time that it takes
//! may depend on the numbers.
//!
//! This is Montgomery multiplication, in the form CIOS of Koç, Acar and Kaliski (1996). Digits have 32 bits, and are stored in 64 for their
//! products: WebAssembly has no wider integers. A general library for large integers would be a fifteenth of the browser's module.

const DIGIT: u32 = 32;
const MASK: u64 = 0xffff_ffff;

/// Digits, the lowest first.
type Number = Vec<u64>;

/// An odd modulus, with what multiplication modulo it needs.
struct Modulus {
    digits: Number,
    /// The digit whose product with the modulus has -1 as its lowest digit.
    inverse: u64,
}

/// Returns `base` to the power of `exponent` modulo `modulus`; `None` if the modulus is even or empty, or the exponent is 0. Numbers have the highest
/// byte first, and the result is as long as the modulus. The base must be less than the modulus.
pub(super) fn power(base: &[u8], exponent: u32, modulus: &[u8]) -> Option<Vec<u8>> {
    let number = Modulus::new(modulus)?;
    let base = number.enter(&digits(base, number.digits.len()));
    let mut power = base.clone();
    // From the bit below the highest one on.
    for bit in (0..exponent.checked_ilog2()?).rev() {
        power = number.product(&power, &power);
        if exponent >> bit & 1 == 1 {
            power = number.product(&power, &base);
        }
    }
    let mut one = vec![0; number.digits.len()];
    *one.first_mut()? = 1;
    let raised = number.product(&power, &one);
    let bytes: Vec<u8> = raised.iter().rev().flat_map(|digit| digit.to_be_bytes().into_iter().skip(4)).collect();
    bytes.get(bytes.len().checked_sub(modulus.len())?..).map(<[u8]>::to_vec)
}

/// Returns the digits of a number in bytes, padded to `count`.
fn digits(bytes: &[u8], count: usize) -> Number {
    let digit = |part: &[u8]| part.iter().fold(0, |digit, byte| digit << 8 | u64::from(*byte));
    let mut digits: Number = bytes.rchunks(4).map(digit).collect();
    digits.resize(count, 0);
    digits
}

impl Modulus {
    fn new(bytes: &[u8]) -> Option<Self> {
        let digits = digits(bytes, bytes.len().div_ceil(4));
        let lowest = *digits.first()?;
        if lowest & 1 == 0 {
            return None;
        }
        // Newton's method: an odd digit is its own inverse modulo 2^3, and each step doubles the number of bits that are right.
        let inverse = (0..4).fold(lowest, |inverse: u64, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(lowest.wrapping_mul(inverse))) & MASK
        });
        Some(Self { digits, inverse: inverse.wrapping_neg() & MASK })
    }

    /// Returns `number` times R, 2 to the power of all bits of the modulus' digits: the form that `product` takes.
    fn enter(&self, number: &Number) -> Number {
        let mut number = number.clone();
        for _ in 0..self.digits.len() {
            for _ in 0..DIGIT {
                self.double(&mut number);
            }
        }
        number
    }

    fn double(&self, number: &mut Number) {
        let mut carry = 0;
        for digit in number.iter_mut() {
            let doubled = *digit << 1 | carry;
            *digit = doubled & MASK;
            carry = doubled >> DIGIT;
        }
        self.reduce(number, carry);
    }

    /// Returns the product divided by R.
    fn product(&self, left: &Number, right: &Number) -> Number {
        let mut sum: Number = vec![0; self.digits.len()];
        let mut top = 0;
        for factor in left {
            let carry = add_multiple(&mut sum, *factor, right);
            top += carry;
            let lowest = sum.first().copied().unwrap_or(0);
            // This makes the lowest digit 0, which is then dropped.
            let multiple = lowest.wrapping_mul(self.inverse) & MASK;
            top += add_multiple(&mut sum, multiple, &self.digits);
            sum.rotate_left(1);
            if let Some(highest) = sum.last_mut() {
                *highest = top & MASK;
            }
            top >>= DIGIT;
        }
        self.reduce(&mut sum, top);
        sum
    }

    /// Subtracts the modulus once, unless the number, with `top` as its highest digit, is less than it.
    fn reduce(&self, number: &mut Number, top: u64) {
        if top == 0 && number.iter().rev().lt(self.digits.iter().rev()) {
            return;
        }
        let mut borrow = 0;
        for (digit, less) in number.iter_mut().zip(&self.digits) {
            let difference = digit.wrapping_sub(*less).wrapping_sub(borrow);
            *digit = difference & MASK;
            borrow = difference >> 63;
        }
    }
}

/// Adds `factor * number`, and returns the carry beyond the sum's digits.
fn add_multiple(sum: &mut Number, factor: u64, number: &Number) -> u64 {
    sum.iter_mut().zip(number).fold(0, |carry, (digit, other)| {
        // This cannot overflow: with the largest digits, it is the largest number of 64 bits.
        let added = *digit + factor * other + carry;
        *digit = added & MASK;
        added >> DIGIT
    })
}

#[cfg(test)]
mod tests {
    use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
    use crypto_bigint::{BoxedUint, Odd};
    use proptest::prelude::*;

    use super::power;

    /// Returns the same as a library for large integers computes it.
    fn expected(base: &[u8], exponent: u32, modulus: &[u8]) -> Vec<u8> {
        let bits = u32::try_from(modulus.len() * 8).expect("few");
        let odd = Odd::new(BoxedUint::from_be_slice(modulus, bits).expect("it fits")).expect("it is odd");
        let params = BoxedMontyParams::new_vartime(odd);
        let number = BoxedUint::from_be_slice(base, params.bits_precision()).expect("it fits");
        let raised = BoxedMontyForm::new(number, &params).pow_bounded_exp(&BoxedUint::from(exponent), u32::BITS);
        let bytes = raised.retrieve().to_be_bytes();
        bytes[bytes.len() - modulus.len()..].to_vec()
    }

    proptest! {
        #[test]
        fn powers_are_those_of_a_library(
            mut modulus in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0xff)], 1..80),
            seed in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(0xff)], 80),
            exponent in prop_oneof![Just(3), Just(65_537), 1_u32..],
        ) {
            modulus[0] = modulus[0].max(1);
            *modulus.last_mut().expect("one at least") |= 1;
            let mut base = seed[..modulus.len()].to_vec();
            if base >= modulus {
                base = modulus.clone();
                *base.last_mut().expect("one at least") -= 1;
            }
            prop_assert_eq!(power(&base, exponent, &modulus), Some(expected(&base, exponent, &modulus)));
        }
    }

    #[test]
    fn an_even_modulus_has_no_power() {
        assert_eq!(power(&[1], 3, &[4]), None);
        assert_eq!(power(&[1], 3, &[]), None);
        assert_eq!(power(&[1], 0, &[5]), None);
    }
}
