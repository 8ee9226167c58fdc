//! A chart of times by the size of the filter, beside the limit and the baselines.

use systola_draw::chart::{Axis, Chart, Mark, Scale, Shape};

use super::baselines::Baselines;
use super::case::{Case, Group};
use super::limits::Limits;

/// The times of one filter.
#[derive(Clone, Debug)]
struct Point {
    size: f64,
    limit: f64,
    ours: f64,
    /// In the order of the group's baselines.
    baselines: Vec<Option<f64>>,
}

/// The measured times of a group, in milliseconds, of square filters.
#[derive(Clone, Debug)]
pub struct Plot {
    group: Group,
    /// Rows and columns of the image.
    pub side: usize,
    points: Vec<Point>,
}

impl Plot {
    pub fn new(group: Group) -> Plot {
        Plot {
            group,
            side: 0,
            points: Vec::new(),
        }
    }

    /// Takes the time of the fastest mapping of a case, in seconds. Filters that are not square
    /// have no place on the axis.
    pub fn add(&mut self, case: &Case, seconds: f64, limits: &Limits, baselines: &Baselines) {
        let Some(size) = case.baseline.as_deref().and_then(square) else {
            return;
        };
        let of = |name: &&str| baselines.of(self.group, &case.name, name);
        self.points.push(Point {
            size,
            limit: limits.seconds(&case.work) * 1e3,
            ours: seconds * 1e3,
            baselines: self.group.baselines().iter().map(of).collect(),
        });
    }

    /// The chart as SVG; `None` if nothing was measured.
    pub fn draw(mut self, device: &str) -> Option<String> {
        self.points.sort_by(|a, b| a.size.total_cmp(&b.size));
        let largest = self.points.last()?.size;
        let mut lines: Vec<(&str, Vec<(f64, f64)>)> = vec![
            ("Systola", self.line(|p| Some(p.ours))),
            ("limit of the machine", self.line(|p| Some(p.limit))),
        ];
        for (n, name) in self.group.baselines().iter().enumerate() {
            lines.push((name, self.line(|p| p.baselines[n])));
        }
        lines.retain(|(_, points)| !points.is_empty());
        let x = Axis {
            scale: Scale::Linear { hi: largest + 1.0 },
            name: "rows and columns of the filter",
            label: |size| format!("{size:.0}"),
        };
        let times = lines.iter().flat_map(|(_, points)| points);
        let y = Axis {
            scale: Scale::log(times.map(|(_, ms)| *ms)),
            name: "ms",
            label: |ms| format!("{ms}"),
        };
        let (title, side) = (self.group.title(), self.side);
        let title = format!("{title}, {side} × {side}, {device}");
        let mut chart = Chart::new(&title, x, y);
        let mut legend = Vec::new();
        for (colour, (name, points)) in lines.iter().enumerate() {
            let mark = Mark {
                colour,
                shape: match colour {
                    0 => Shape::Diamond,
                    _ => Shape::Disc,
                },
                ringed: false,
            };
            chart.line(points, colour);
            for (x, y) in points {
                chart.mark(*x, *y, mark);
            }
            legend.push((mark, (*name).to_string()));
        }
        Some(chart.finish(&legend))
    }

    fn line(&self, ms: impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
        let points = self.points.iter();
        points.filter_map(|p| Some((p.size, ms(p)?))).collect()
    }
}

/// `5x5` is 5; `5x17` is none.
fn square(filter: &str) -> Option<f64> {
    let (rows, columns) = filter.split_once('x')?;
    if rows != columns {
        return None;
    }
    rows.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_square_filters_are_plotted() {
        assert_eq!(square("13x13"), Some(13.0));
        assert_eq!(square("5x17"), None);
        assert_eq!(square("64"), None);
    }

    #[test]
    fn a_chart_has_a_line_for_each_that_was_measured() {
        let point = |size: f64, npp| Point {
            size,
            limit: 0.1 * size,
            ours: 0.2 * size,
            baselines: vec![Some(size), npp, None],
        };
        let plot = Plot {
            group: Group::Conv2d,
            side: 100,
            points: vec![point(5.0, None), point(3.0, Some(4.0))],
        };
        let svg = plot.draw("a GPU").unwrap();
        for name in ["Systola", "limit of the machine", "cuDNN", "NPP"] {
            assert!(svg.contains(&format!(">{name}<")), "{name} in {svg}");
        }
        assert!(!svg.contains("CuPy"), "{svg}");
        assert!(Plot::new(Group::Conv2d).draw("a GPU").is_none());
    }
}
