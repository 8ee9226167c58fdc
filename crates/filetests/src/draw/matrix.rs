//! Small integer matrices, by minors.

pub(super) fn dot(a: &[i64], b: &[i64]) -> i64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// All vectors over -1, 0, 1.
pub(super) fn vectors(n: usize) -> Vec<Vec<i64>> {
    let mut list = vec![Vec::new()];
    for _ in 0..n {
        list = list
            .into_iter()
            .flat_map(|v| {
                [-1, 0, 1].map(|c| {
                    let mut v = v.clone();
                    v.push(c);
                    v
                })
            })
            .collect();
    }
    list
}

pub(super) fn determinant(rows: &[Vec<i64>]) -> i64 {
    let [first, rest @ ..] = rows else { return 1 };
    (0..first.len())
        .map(|k| {
            let minor: Vec<Vec<i64>> = rest
                .iter()
                .map(|row| {
                    let mut row = row.clone();
                    row.remove(k);
                    row
                })
                .collect();
            let sign = if k % 2 == 0 { 1 } else { -1 };
            sign * first[k] * determinant(&minor)
        })
        .sum()
}

/// By minors, of at most four rows.
pub(super) fn rank(rows: &[Vec<i64>]) -> usize {
    let n = rows.first().map_or(0, Vec::len);
    let size = rows.len().min(n);
    let subsets = |n: usize, k: usize| -> Vec<Vec<usize>> {
        (0..1usize << n)
            .map(|mask| (0..n).filter(|b| mask >> b & 1 == 1).collect::<Vec<_>>())
            .filter(|s| s.len() == k)
            .collect()
    };
    for k in (1..=size).rev() {
        for r in subsets(rows.len(), k) {
            for c in subsets(n, k) {
                let minor: Vec<Vec<i64>> = r
                    .iter()
                    .map(|row| c.iter().map(|col| rows[*row][*col]).collect())
                    .collect();
                if determinant(&minor) != 0 {
                    return k;
                }
            }
        }
    }
    0
}

/// Of a matrix with determinant 1 or -1.
pub(super) fn inverse(rows: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let n = rows.len();
    let det = determinant(rows);
    (0..n)
        .map(|r| {
            (0..n)
                .map(|c| {
                    let minor: Vec<Vec<i64>> = (0..n)
                        .filter(|k| *k != c)
                        .map(|k| {
                            let mut row = rows[k].clone();
                            row.remove(r);
                            row
                        })
                        .collect();
                    let sign = if (r + c) % 2 == 0 { 1 } else { -1 };
                    sign * det * determinant(&minor)
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_inverts() {
        let rows = vec![vec![1, 1, 0], vec![0, 1, 0], vec![1, 1, 1]];
        let inverse = inverse(&rows);
        for (k, row) in inverse.iter().enumerate() {
            for j in 0..3 {
                let column: Vec<i64> = rows.iter().map(|r| r[j]).collect();
                assert_eq!(dot(row, &column), i64::from(k == j));
            }
        }
        assert_eq!(rank(&[vec![1, 2], vec![2, 4]]), 1);
    }
}
