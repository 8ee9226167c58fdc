//! Reference implementations of the problems as plain loops: sums in f64, scores in integers. Every
//! timed result is compared with these.

use crate::threads;

/// Fills each row of `out`, the last of which may be short, on one of all threads.
fn by_rows(out: &mut [f64], row_len: usize, fill: impl Fn(usize, &mut [f64]) + Sync) {
    let mut rows: Vec<&mut [f64]> = out.chunks_mut(row_len.max(1)).collect();
    threads::fill(&mut rows, |n, row| fill(n, row));
}

/// z(c) = Σ x(c + q) w(q).
pub fn conv1d(x: &[f32], w: &[f32]) -> Vec<f64> {
    const PART: usize = 4096;
    let n = x.len() + 1 - w.len();
    let mut z = vec![0.0; n];
    by_rows(&mut z, PART, |part, z| {
        for (q, weight) in w.iter().enumerate() {
            let x = &x[part * PART + q..];
            for (z, x) in z.iter_mut().zip(x) {
                *z += f64::from(*weight) * f64::from(*x);
            }
        }
    });
    z
}

/// z(r, c) = Σ x(r + p, c + q) w(p, q), of `[rows, columns]` values.
pub fn conv2d(x: &[f32], w: &[f32], [rows, columns]: [usize; 2], [h, q]: [usize; 2]) -> Vec<f64> {
    let wide = columns + q - 1;
    let mut z = vec![0.0; rows * columns];
    by_rows(&mut z, columns, |r, z| {
        for (tap, weight) in w[..h * q].iter().enumerate() {
            let start = (r + tap / q) * wide + tap % q;
            for (z, x) in z.iter_mut().zip(&x[start..]) {
                *z += f64::from(*weight) * f64::from(*x);
            }
        }
    });
    z
}

/// c(i, j) = Σ a(i, k) b(k, j), where b has `columns`.
pub fn matmul(a: &[f32], b: &[f32], depth: usize, columns: usize) -> Vec<f64> {
    let mut c = vec![0.0; a.len() / depth * columns];
    by_rows(&mut c, columns, |i, c| {
        for (k, b) in b.chunks(columns).enumerate() {
            let a = f64::from(a[i * depth + k]);
            for (c, b) in c.iter_mut().zip(b) {
                *c += a * f64::from(*b);
            }
        }
    });
    c
}

/// Levenshtein's distance of each pair of strings of `n` and `m` letters.
pub fn edit_distance(a: &[u8], b: &[u8], n: usize, m: usize) -> Vec<f64> {
    let mut distance = vec![0.0; a.len() / n];
    by_rows(&mut distance, 1, |pair, distance| {
        let (a, b) = (&a[pair * n..][..n], &b[pair * m..][..m]);
        let mut above: Vec<i32> = (0..=m as i32).collect();
        for (i, letter) in a.iter().enumerate() {
            let mut row = vec![i as i32 + 1];
            for j in 0..m {
                let replaced = above[j] + i32::from(letter != &b[j]);
                row.push(replaced.min(above[j + 1] + 1).min(row[j] + 1));
            }
            above = row;
        }
        distance[0] = f64::from(above[m]);
    });
    distance
}

/// The scores of an alignment.
#[derive(Clone, Copy, Debug)]
pub struct Scoring<'a> {
    /// The score of each pair of letters, a row for each letter of the first string.
    pub substitution: &'a [i16],
    pub letters: usize,
    /// The cost of a gap of one letter, and of each further letter.
    pub open: i32,
    pub extend: i32,
}

/// The best local alignment of each pair of strings of `n` and `m` letters.
pub fn smith_waterman(a: &[u8], b: &[u8], n: usize, m: usize, scoring: Scoring<'_>) -> Vec<f64> {
    let Scoring {
        substitution,
        letters,
        open,
        extend,
    } = scoring;
    let mut best = vec![0.0; a.len() / n];
    by_rows(&mut best, 1, |pair, best| {
        let (a, b) = (&a[pair * n..][..n], &b[pair * m..][..m]);
        let (mut above, mut row, mut gaps) = (vec![0; m + 1], vec![0; m + 1], vec![-open; m]);
        let mut most = 0;
        for letter in a {
            let scores = &substitution[usize::from(*letter) * letters..][..letters];
            let mut gap = -open;
            for j in 0..m {
                gap = (gap - extend).max(row[j] - open);
                gaps[j] = (gaps[j] - extend).max(above[j + 1] - open);
                let matched = above[j] + i32::from(scores[usize::from(b[j])]);
                let score = matched.max(gap).max(gaps[j]).max(0);
                most = most.max(score);
                row[j + 1] = score;
            }
            std::mem::swap(&mut above, &mut row);
        }
        best[0] = f64::from(most);
    });
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_convolutions() {
        assert_eq!(
            conv1d(&[1.0, 2.0, 3.0, 4.0], &[10.0, 1.0]),
            [12.0, 23.0, 34.0]
        );
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(
            conv2d(&x, &[1.0, 10.0], [2, 2], [1, 2]),
            [21.0, 32.0, 54.0, 65.0]
        );
        assert_eq!(conv2d(&x, &[1.0, 10.0], [1, 3], [2, 1]), [41.0, 52.0, 63.0]);
    }

    #[test]
    fn a_long_convolution_has_no_seams() {
        let x: Vec<f32> = (0..10_000_u16).map(f32::from).collect();
        let z = conv1d(&x, &[1.0, -1.0, 2.0]);
        assert_eq!(z.len(), 9998);
        for (c, z) in z.iter().enumerate() {
            assert_eq!(*z, 2.0 * c as f64 + 3.0, "{c}");
        }
    }

    #[test]
    fn a_small_product() {
        let c = matmul(&[1.0, 2.0, 3.0, 4.0], &[1.0, 0.0, 2.0, 0.0, 1.0, 3.0], 2, 3);
        assert_eq!(c, [1.0, 2.0, 8.0, 3.0, 4.0, 18.0]);
    }

    #[test]
    fn known_distances() {
        assert_eq!(edit_distance(b"kitten", b"sitting", 6, 7), [3.0]);
        assert_eq!(edit_distance(b"abcdxyz-", b"abcexyz-", 4, 4), [1.0, 0.0]);
    }

    #[test]
    fn a_gap_is_opened_once() {
        // Two letters, 5 if equal and -4 if not. `aabb` in `aaXXbb` needs a gap of two: 4 * 5 - (3
        // + 1).
        let substitution = [5, -4, -4, -4, 5, -4, -4, -4, 5];
        let scoring = Scoring {
            substitution: &substitution,
            letters: 3,
            open: 3,
            extend: 1,
        };
        let (a, b) = ([0, 0, 1, 1], [0, 0, 2, 2, 1, 1]);
        assert_eq!(smith_waterman(&a, &b, 4, 6, scoring), [16.0]);
        // An expensive gap does not pay.
        let expensive = Scoring {
            open: 30,
            ..scoring
        };
        assert_eq!(smith_waterman(&a, &b, 4, 6, expensive), [10.0]);
        assert_eq!(smith_waterman(&[0], &[1], 1, 1, scoring), [0.0]);
    }
}
