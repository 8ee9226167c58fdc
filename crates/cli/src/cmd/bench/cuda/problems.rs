//! What is timed on a GPU: sizes beyond its caches, and the mappings that are tried.

use super::super::family::Family;
use super::super::problem::{self, Make, Scale};

pub struct Case {
    pub name: String,
    pub mappings: &'static [&'static str],
    pub make: Make,
}

pub fn problems(family: Family, scale: Scale) -> Vec<Case> {
    let small = scale == Scale::Small;
    match family {
        Family::Conv2d => {
            let n = if small { 100 } else { 8192 };
            let squares = (2..=20).map(|k| [k, k]);
            let others = [[1, 9], [9, 1], [5, 17]];
            let filters: Vec<[usize; 2]> = if small {
                vec![[3, 3], [2, 5]]
            } else {
                squares.chain(others).collect()
            };
            filters
                .into_iter()
                .map(|filter| {
                    let name = format!("{n}², {} × {}", filter[0], filter[1]);
                    Case {
                        name: name.clone(),
                        mappings: &["quads", "stream", "slim", "rolled"],
                        make: Box::new(move || Ok(problem::conv2d_same(name.clone(), n, filter))),
                    }
                })
                .collect()
        }
        Family::Matmul => {
            let n = if small { 100 } else { 4096 };
            let name = format!("matrix product {n}³");
            vec![Case {
                name: name.clone(),
                mappings: &["blocks", "squares"],
                make: Box::new(move || Ok(problem::matmul(name.clone(), n))),
            }]
        }
        Family::Conv1d | Family::EditDistance | Family::SmithWaterman | Family::Designs => {
            Vec::new()
        }
    }
}
