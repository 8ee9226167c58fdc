//! A map from numbers to colours, from dark violet over blue and green to yellow.
//!
//! Lightness grows evenly from one end to the other, so that the picture has the same order in grey
//! and for people who are colour-blind. The path is a line in OKLCh (Ottosson 2020), with less
//! chroma where the screen has no such colour.

/// Red, green and blue of 256 colours, dark to bright.
pub fn palette() -> Vec<[u8; 3]> {
    (0..256).map(|n| colour(f64::from(n) / 255.0)).collect()
}

fn colour(at: f64) -> [u8; 3] {
    let between = |from: f64, to: f64| from + (to - from) * at;
    let lightness = between(0.24, 0.93);
    let hue = between(325.0, 105.0).to_radians();
    let mut chroma = 0.18;
    loop {
        let linear = linear_rgb(lightness, chroma * hue.cos(), chroma * hue.sin());
        if chroma <= 0.0 || linear.iter().all(|c| (0.0..=1.0).contains(c)) {
            return linear.map(|c| (gamma(c.clamp(0.0, 1.0)) * 255.0).round() as u8);
        }
        chroma -= 0.002;
    }
}

/// From OKLab to linear sRGB.
fn linear_rgb(lightness: f64, a: f64, b: f64) -> [f64; 3] {
    let cube = |x: f64| x * x * x;
    let l = cube(lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let m = cube(lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let s = cube(lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

fn gamma(c: f64) -> f64 {
    match c <= 0.003_130_8 {
        true => 12.92 * c,
        false => 1.055 * c.powf(1.0 / 2.4) - 0.055,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brightness_grows_from_colour_to_colour() {
        let palette = palette();
        let luminance = |[r, g, b]: [u8; 3]| {
            0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b)
        };
        for pair in palette.windows(16) {
            assert!(luminance(pair[15]) > luminance(pair[0]), "{pair:?}");
        }
        assert!(luminance(palette[0]) < 30.0 && luminance(palette[255]) > 200.0);
        let different: std::collections::BTreeSet<_> = palette.iter().collect();
        assert!(different.len() > 250, "{}", different.len());
    }
}
