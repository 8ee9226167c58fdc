//! Neighbourhoods by name: boxes, stars, differences and unions.

/// A set of offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All offsets within a radius along each axis.
    Box(Vec<i128>),
    /// The offsets along one axis at a time, within its radius.
    Star(Vec<i128>),
    /// The difference of two shapes.
    Except(Box<Shape>, Box<Shape>),
    /// The union of two shapes.
    And(Box<Shape>, Box<Shape>),
}

impl Shape {
    /// The box of a radius in this many dimensions.
    pub fn cube(n_axes: usize, radius: i128) -> Shape {
        Shape::Box(vec![radius; n_axes])
    }

    /// The star of a radius in this many dimensions.
    pub fn star(n_axes: usize, radius: i128) -> Shape {
        Shape::Star(vec![radius; n_axes])
    }

    #[must_use]
    pub fn except(self, without: Shape) -> Shape {
        Shape::Except(Box::new(self), Box::new(without))
    }

    #[must_use]
    pub fn and(self, more: Shape) -> Shape {
        Shape::And(Box::new(self), Box::new(more))
    }

    /// Its offsets in row-major order.
    pub fn offsets(&self) -> Vec<Vec<i128>> {
        let mut list: Vec<Vec<i128>> = vec![Vec::new()];
        for radius in self.radii() {
            list = list
                .iter()
                .flat_map(|start| {
                    (-radius..=radius).map(move |o| start.iter().copied().chain([o]).collect())
                })
                .collect();
        }
        list.retain(|offset| self.contains(offset));
        list
    }

    /// The number of offsets in its bounding box.
    pub fn volume(&self) -> i128 {
        self.radii().iter().fold(1, |n: i128, r| {
            n.saturating_mul(r.saturating_mul(2).saturating_add(1))
        })
    }

    /// Its reach along each axis.
    pub fn radii(&self) -> Vec<i128> {
        match self {
            Shape::Box(radii) | Shape::Star(radii) => radii.clone(),
            Shape::Except(all, _) => all.radii(),
            Shape::And(one, other) => {
                let both = one.radii().into_iter().zip(other.radii());
                both.map(|(a, b)| a.max(b)).collect()
            }
        }
    }

    fn contains(&self, offset: &[i128]) -> bool {
        let within = |radii: &[i128]| offset.iter().zip(radii).all(|(o, r)| o.abs() <= *r);
        match self {
            Shape::Box(radii) => within(radii),
            Shape::Star(radii) => within(radii) && offset.iter().filter(|o| **o != 0).count() <= 1,
            Shape::Except(all, without) => all.contains(offset) && !without.contains(offset),
            Shape::And(one, other) => one.contains(offset) || other.contains(offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn numbers_of_offsets_are_those_of_the_literature() {
        let check = |shape: &Shape, n: usize| assert_eq!(shape.offsets().len(), n, "{shape:?}");
        check(&Shape::Star(vec![1, 1]), 5);
        check(&Shape::Star(vec![6, 6]), 25);
        check(&Shape::Star(vec![2, 2, 2]), 13);
        check(&Shape::Box(vec![2, 2, 2]), 125);
        let cross = Shape::cube(2, 4).except(Shape::star(2, 4));
        check(&cross, 64);
        assert_eq!(cross.offsets()[0], [-4, -4]);
        assert_eq!(Shape::Star(vec![0]).offsets(), [[0]]);
        let plane = |radii: [i128; 3]| Shape::Box(radii.to_vec());
        let planes = plane([1, 1, 0]).and(plane([1, 0, 1]).and(plane([0, 1, 1])));
        check(&planes, 19);
        assert_eq!(planes.radii(), [1, 1, 1]);
    }
}
