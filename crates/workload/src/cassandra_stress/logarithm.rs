//! The natural logarithm to the last bit of Java's `StrictMath.log`, which is fdlibm's.
//!
//! The platform's logarithm differs from it in the last bit now and then, and a Gaussian column
//! would with it. `x = 2^k (1 + f)` with `1 + f` near 1; `log(1 + f) = f - f^2/2 + s (f^2/2 + R)`,
//! where `s = f / (2 + f)` and R is a polynomial in `s^2`. Source: fdlibm 5.3, `e_log.c`.
//! Limits: normal numbers above 0, which is all that the polar method asks for.

const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
/// Coefficients of `s^2`, `s^4` ... `s^14`.
const COEFFICIENTS: [f64; 7] = [
    f64::from_bits(0x3FE5_5555_5555_5593),
    f64::from_bits(0x3FD9_9999_9997_FA04),
    f64::from_bits(0x3FD2_4924_9422_9359),
    f64::from_bits(0x3FCC_71C5_1D8E_78AF),
    f64::from_bits(0x3FC7_4664_96CB_03DE),
    f64::from_bits(0x3FC3_9A09_D078_C69F),
    f64::from_bits(0x3FC2_F112_DF3E_5244),
];

/// ln(x) for a normal x > 0.
pub(super) fn natural(x: f64) -> f64 {
    let bits = x.to_bits();
    let high = (bits >> 32) as i32 & 0x000F_FFFF;
    // 1 + f lies in [sqrt(1/2), sqrt(2)): above, its exponent is one less and k one more.
    let carry = (high + 0x9_5F64) & 0x10_0000;
    let k = ((bits >> 52) as i32 - 1023) + (carry >> 20);
    let exponent = u64::from((carry ^ 0x3FF0_0000).cast_unsigned());
    let fraction = bits & 0x000F_FFFF_FFFF_FFFF;
    let f = f64::from_bits(exponent << 32 | fraction) - 1.0;
    let (k_high, k_low) = (f64::from(k) * LN2_HIGH, f64::from(k) * LN2_LOW);
    if 0x000F_FFFF & (2 + high) < 3 {
        // |f| < 2^-20: a short series.
        if f == 0.0 {
            return if k == 0 { 0.0 } else { k_high + k_low };
        }
        let rest = f * f * (0.5 - (1.0 / 3.0) * f);
        return if k == 0 { f - rest } else { k_high - ((rest - k_low) - f) };
    }
    let [c1, c2, c3, c4, c5, c6, c7] = COEFFICIENTS;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (c2 + w * (c4 + w * c6));
    let odd = z * (c1 + w * (c3 + w * (c5 + w * c7)));
    let rest = odd + even;
    // In the middle of the range f^2/2 is split off.
    if (high - 0x6_147A) | (0x6_B851 - high) > 0 {
        let half_square = 0.5 * f * f;
        if k == 0 {
            f - (half_square - s * (half_square + rest))
        } else {
            k_high - ((half_square - (s * (half_square + rest) + k_low)) - f)
        }
    } else if k == 0 {
        f - s * (f - rest)
    } else {
        k_high - ((s * (f - rest) - k_low) - f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra_stress::JavaRandom;

    fn fold(values: impl Iterator<Item = f64>) -> i64 {
        values.fold(0, |fold: i64, value| {
            fold.wrapping_mul(31).wrapping_add(value.to_bits().cast_signed())
        })
    }

    /// Folds over the bits of a million results of `StrictMath.log` on OpenJDK 17.
    #[test]
    fn equals_java() {
        let mut random = JavaRandom::seeded(42);
        let below_1 = fold((0..1_000_000).map(|_| natural(random.next_f64())));
        assert_eq!(below_1, -456_210_372_486_498_785);
        let around_1 = (0..1_000_000).map(|i| natural(1.0 + f64::from(i - 500_000) * 1e-12));
        assert_eq!(fold(around_1), -6_329_230_476_286_404_484);
    }
}
