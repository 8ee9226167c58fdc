//! The sets that occur in practice: boxes, triangles and bands with parameters, tiles and strides.

use affine::{
    BasicSetBuilder, Constraint, Error, Int, LinExpr, Map, Result, Set, Space, SymbolicBounds,
};

const N: &[&str] = &["N"];
const IJ: &[&str] = &["i", "j"];

/// `{ (i, j) : 0 <= i < N and i <= j < N }`
fn triangle() -> Result<Set> {
    let space = Space::new(1, 2);
    let (n, i, j) = (space.param(0)?, space.dim(0)?, space.dim(1)?);
    let mut b = BasicSetBuilder::new(space);
    b.range(&0.into(), &i, &n)?;
    b.range(&i, &j, &n)?;
    Ok(b.build().into())
}

/// `{ (i, j) : 0 <= i, j < N }`
fn square() -> Result<Set> {
    let space = Space::new(1, 2);
    let n = space.param(0)?;
    let mut b = BasicSetBuilder::new(space);
    b.range(&0.into(), &space.dim(0)?, &n)?;
    b.range(&0.into(), &space.dim(1)?, &n)?;
    Ok(b.build().into())
}

fn show(set: &Set) -> String {
    set.display(N, IJ).to_string()
}

#[test]
fn difference_and_union_print_as_written() -> Result<()> {
    assert_eq!(show(&triangle()?), "{ (i, j) : 0 <= i < N and i <= j < N }");
    let below = square()?.subtract(&triangle()?)?.coalesce()?;
    assert_eq!(show(&below), "{ (i, j) : i < N and 0 <= j < i }");
    let whole = below.union(&triangle()?)?.coalesce()?;
    assert!(whole.is_equal(&square()?)?);
    assert_eq!(whole.pieces().len(), 1);
    Ok(())
}

#[test]
fn lexicographic_optima_are_parametric() -> Result<()> {
    let set = triangle()?;
    assert_eq!(
        show(&set.lexmin()?),
        "{ (i, j) : 1 <= N and i = 0 and j = 0 }"
    );
    let last = show(&set.lexmax()?);
    assert_eq!(last, "{ (i, j) : 1 <= N and i = N - 1 and j = N - 1 }");
    assert_eq!(set.lexmin_point(&[0])?, None);
    Ok(())
}

#[test]
fn huge_sets_are_counted_without_visiting() -> Result<()> {
    let m = 1_000_000;
    assert_eq!(triangle()?.count(&[m])?, Some(m * (m + 1) / 2));
    let space = Space::new(1, 3);
    let n = space.param(0)?;
    let (i, j, k) = (space.dim(0)?, space.dim(1)?, space.dim(2)?);
    let mut b = BasicSetBuilder::new(space);
    b.range(&0.into(), &i, &n)?;
    b.range(&0.into(), &j, &n)?;
    b.range(&0.into(), &k, &n)?;
    let cube = Set::from(b.clone().build());
    assert_eq!(cube.count(&[m])?, Some(m * m * m));
    b.le(&i, &j)?;
    b.le(&j, &k)?;
    let simplex = Set::from(b.clone().build());
    assert_eq!(simplex.count(&[m])?, Some(m * (m + 1) * (m + 2) / 6));
    // A band |i - k| <= 10 whose k is a multiple of 3.
    let mut b = BasicSetBuilder::new(space);
    b.range(&0.into(), &i, &n)?;
    b.range(&0.into(), &j, &n)?;
    b.range(&0.into(), &k, &n)?;
    b.le(&i.sub(&k)?, &10.into())?;
    b.le(&k.sub(&i)?, &10.into())?;
    let r = b.modulo(&k, 3)?;
    b.eq(&r, &0.into())?;
    let band = Set::from(b.build());
    let brute = |m: Int| {
        let mut c = 0;
        for k in (0..m).step_by(3) {
            c += (k + 10).min(m - 1) - (k - 10).max(0) + 1;
        }
        c * m
    };
    assert_eq!(band.count(&[50])?, Some(brute(50)));
    assert_eq!(band.count(&[m])?, Some(brute(m)));
    Ok(())
}

#[test]
fn infinite_sets_say_so() -> Result<()> {
    let space = Space::new(0, 2);
    let half_plane = Set::from_constraints(space, [Constraint::Ge(LinExpr::new(&[1, 2], -7))])?;
    assert_eq!(half_plane.count(&[])?, None);
    assert_eq!(half_plane.sample()?, Some((vec![], vec![0, 4])));
    assert!(matches!(
        half_plane.points(&[]).map(|_| ()),
        Err(Error::Unbounded { .. })
    ));
    assert_eq!(
        half_plane.bounds(&LinExpr::new(&[2, 4], 1), &[])?,
        (Some(15), None)
    );
    assert_eq!(
        half_plane.lexmin_point(&[]),
        Err(Error::Unbounded { dim: 0 })
    );
    Ok(())
}

#[test]
fn bounds_in_terms_of_parameters() -> Result<()> {
    let set = triangle()?;
    let e = set.space().dim(0)?.add(&set.space().dim(1)?)?;
    let expect = SymbolicBounds {
        lower: vec![(LinExpr::constant(0), 1)],
        upper: vec![(LinExpr::new(&[2], -2), 1)],
    };
    assert_eq!(set.bounds_symbolic(&e)?, vec![expect]);
    assert_eq!(set.bounds(&e, &[10])?, (Some(0), Some(18)));
    assert_eq!(set.bounds(&e, &[0])?, (None, None));
    Ok(())
}

#[test]
fn tiles_of_lanes_and_registers() -> Result<()> {
    // x -> (warp, lane, reg) with 4 values per lane and 32 lanes is injective.
    let space = Space::new(1, 1);
    let x = space.dim(0)?;
    let mut b = BasicSetBuilder::new(space);
    let lane = b.floor_div(&x, 4)?;
    let warp = b.floor_div(&lane, 32)?;
    let lane = b.modulo(&lane, 32)?;
    let reg = b.modulo(&x, 4)?;
    let place = b.build_map(vec![warp, lane, reg])?;
    let line = Set::from_constraints(
        space,
        [
            Constraint::Ge(x.clone()),
            Constraint::lt(&x, &space.param(0)?)?,
        ],
    )?;
    let image = line.image(&place)?;
    assert_eq!(image.count(&[1000])?, Some(1000));
    assert!(image.contains(&[1000], &[1, 3, 2])?);
    assert!(!image.contains(&[142], &[1, 3, 2])?);
    assert!(image.preimage(&place)?.is_equal(&line)?);

    // Two points with the same place are the same point.
    let pair = Space::new(1, 2);
    let mut b = BasicSetBuilder::new(pair);
    let mut places = Vec::new();
    for d in 0..2 {
        let x = pair.dim(d)?;
        let lane = b.floor_div(&x, 4)?;
        let warp = b.floor_div(&lane, 32)?;
        let lane = b.modulo(&lane, 32)?;
        places.push([warp, lane, b.modulo(&x, 4)?]);
    }
    for (a, c) in places[0].iter().zip(&places[1]) {
        b.eq(a, c)?;
    }
    let clash = Set::from(b.build()).intersect(&Set::lex_lt(1, 1)?)?;
    assert!(clash.is_empty()?);
    Ok(())
}

#[test]
fn loops_visit_in_order() -> Result<()> {
    let nests = triangle()?.loop_nests()?;
    let text: Vec<String> = nests.iter().map(|n| n.display(N, IJ).to_string()).collect();
    let expect =
        "if N - 1 >= 0\n  for i in 0 ..= N - 1\n    for j in i ..= N - 1\n      visit (i, j)\n";
    assert_eq!(text, [expect]);
    let space = Space::new(1, 2);
    let mut b = BasicSetBuilder::new(space);
    b.range(&0.into(), &space.dim(0)?, &space.param(0)?)?;
    b.range(&0.into(), &space.dim(1)?, &space.param(0)?)?;
    let sum = space.dim(0)?.add(&space.dim(1)?)?;
    let r = b.modulo(&sum, 3)?;
    b.eq(&r, &1.into())?;
    let strided = Set::from(b.build());
    let mut visited = 0;
    strided.for_each_point(&[30], |p| visited += usize::from((p[0] + p[1]) % 3 == 1))?;
    assert_eq!(visited, 300);
    Ok(())
}

#[test]
fn gist_drops_what_the_context_says() -> Result<()> {
    let context = square()?;
    let gist = triangle()?.gist(&context)?;
    assert_eq!(show(&gist), "{ (i, j) : i <= j }");
    Ok(())
}

#[test]
fn columns_move() -> Result<()> {
    let set = triangle()?;
    let swapped = set.permute_dims(&[1, 0])?;
    assert!(swapped.contains(&[5], &[3, 1])? && !swapped.contains(&[5], &[1, 3])?);
    let fixed = set.fix_params(&[5])?;
    assert_eq!(fixed.space(), Space::new(0, 2));
    assert_eq!(fixed.count(&[])?, Some(15));
    assert_eq!(set.params_to_dims().space(), Space::new(0, 3));
    let row = set.dims_to_params(1)?;
    assert_eq!(row.count(&[5, 2])?, Some(3));
    let pairs = set.product(&set)?;
    assert_eq!(pairs.space(), Space::new(1, 4));
    assert_eq!(pairs.count(&[3])?, Some(36));
    assert!(pairs.domain_of(2)?.is_equal(&set)? && pairs.range_of(2)?.is_equal(&set)?);
    assert_eq!(set.params()?.display(N, IJ).to_string(), "{ () : 1 <= N }");
    assert_eq!(set.insert_dims(1, 2)?.space(), Space::new(1, 4));
    assert!(set.fix_dim(0, 3)?.contains(&[5], &[3, 4])?);
    let image = set.apply(&[set.space().dim(0)?.add(&set.space().dim(1)?)?])?;
    assert_eq!(image.count(&[10])?, Some(19));
    assert!(matches!(
        set.union(&image),
        Err(Error::SpaceMismatch { .. })
    ));
    assert!(set.image(&Map::identity(set.space()))?.is_equal(&set)?);
    Ok(())
}

#[test]
fn work_is_bounded() -> Result<()> {
    // Forty variables in dense inequalities are too complex, which is reported in bounded time.
    let n = 40;
    let space = Space::new(0, n);
    let mut b = BasicSetBuilder::new(space);
    let mut seed: u64 = 1;
    for _ in 0..60 {
        let mut c = Vec::new();
        for _ in 0..n {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            c.push(Int::from(seed >> 59) - 16);
        }
        b.ge(&LinExpr::new(&c, 5), &0.into())?;
        b.le(&LinExpr::new(&c, -9), &3.into())?;
    }
    let set = Set::from(b.build());
    match set.project_out(0..n - 2) {
        Ok(_) | Err(Error::TooComplex { .. } | Error::Overflow) => Ok(()),
        Err(e) => Err(e),
    }
}
