//! How well predictions and measurements agree on which design is fast.

/// Agreement over the designs that were both predicted and measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    pub designs: usize,
    /// Spearman's rank correlation; ties share their mean rank.
    pub correlation: f64,
    /// The predicted rank of the fastest design: 1 if it was predicted to be the fastest.
    pub rank_of_fastest: usize,
    /// The time of the design predicted to be the fastest, and of the best of the first ten
    /// predicted, relative to the fastest measured.
    pub first: f64,
    pub of_ten: f64,
}

impl Agreement {
    /// `pairs`: predicted and measured seconds, in the order of preference among equals.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Agreement> {
        let fastest = (0..pairs.len()).min_by(|a, b| pairs[*a].1.total_cmp(&pairs[*b].1))?;
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|a, b| pairs[*a].0.total_cmp(&pairs[*b].0));
        let best = pairs[fastest].1;
        let ten = order.iter().take(10).map(|n| pairs[*n].1);
        Some(Agreement {
            designs: pairs.len(),
            correlation: correlation(
                &ranks(pairs.iter().map(|p| p.0)),
                &ranks(pairs.iter().map(|p| p.1)),
            ),
            rank_of_fastest: order.iter().position(|n| *n == fastest)? + 1,
            first: pairs[*order.first()?].1 / best,
            of_ten: ten.fold(f64::INFINITY, f64::min) / best,
        })
    }
}

/// The rank of each value; ties share their mean rank.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equals in order.chunk_by(|a, b| values[*a] == values[*b]) {
        for n in equals {
            ranks[*n] = before as f64 + (equals.len() - 1) as f64 / 2.0;
        }
        before += equals.len();
    }
    ranks
}

/// Pearson's correlation of two lists of ranks.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |list: &[f64]| list.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let mixed: f64 = a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum();
    let square = |list: &[f64], m: f64| list.iter().map(|x| (x - m).powi(2)).sum::<f64>();
    mixed / (square(a, ma) * square(b, mb)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_order_agrees_and_the_reverse_does_not() {
        let same = [(1.0, 10.0), (2.0, 20.0), (3.0, 40.0)];
        let found = Agreement::of(&same).unwrap();
        assert_eq!((found.correlation, found.rank_of_fastest), (1.0, 1));
        let reverse = [(3.0, 10.0), (2.0, 20.0), (1.0, 40.0)];
        let found = Agreement::of(&reverse).unwrap();
        assert_eq!((found.correlation, found.rank_of_fastest), (-1.0, 3));
        assert_eq!((found.first, found.of_ten), (4.0, 1.0));
    }

    /// As scipy.stats.spearmanr gives it: 0.7905694150420949.
    #[test]
    fn ties_share_their_mean_rank() {
        let pairs = [(1.0, 2.0), (1.0, 1.0), (2.0, 4.0), (3.0, 3.0), (3.0, 5.0)];
        let found = Agreement::of(&pairs).unwrap();
        assert!((found.correlation - 0.790_569_415_042_094_8).abs() < 1e-12);
        assert_eq!(Agreement::of(&[]), None);
    }
}
