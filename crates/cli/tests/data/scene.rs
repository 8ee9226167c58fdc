//! The sample pictures of `gallery/data`, drawn here: only with operations that round the same way
//! on every machine.

type V = [f64; 3];

fn add(a: V, b: V) -> V {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn scaled(a: V, s: f64) -> V {
    a.map(|x| x * s)
}

fn dot(a: V, b: V) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn unit(a: V) -> V {
    scaled(a, 1.0 / dot(a, a).sqrt())
}

struct Sphere {
    centre: V,
    radius: f64,
    colour: V,
}

const SPHERES: [Sphere; 3] = [
    Sphere {
        centre: [-1.15, 0.8, 4.6],
        radius: 0.8,
        colour: [0.85, 0.25, 0.15],
    },
    Sphere {
        centre: [0.75, 1.1, 5.6],
        radius: 1.1,
        colour: [0.2, 0.45, 0.8],
    },
    Sphere {
        centre: [0.35, 0.42, 3.5],
        radius: 0.42,
        colour: [0.9, 0.75, 0.2],
    },
];

/// The distance to the nearest sphere, and which one it is.
fn hit(from: V, along: V) -> Option<(f64, &'static Sphere)> {
    let distance = |sphere: &Sphere| {
        let to = add(from, scaled(sphere.centre, -1.0));
        let half = dot(to, along);
        let rest = half * half - dot(to, to) + sphere.radius * sphere.radius;
        let distance = -half - rest.sqrt();
        (rest > 0.0 && distance > 1e-6).then_some(distance)
    };
    let hits = SPHERES.iter().filter_map(|s| Some((distance(s)?, s)));
    hits.min_by(|a, b| a.0.total_cmp(&b.0))
}

fn light(from: V, along: V, depth: u32) -> V {
    let sun = unit([-0.6, 1.0, -0.7]);
    let lit = |at: V, normal: V, colour: V| {
        let direct = match hit(at, sun) {
            Some(_) => 0.0,
            None => dot(normal, sun).max(0.0),
        };
        scaled(colour, 0.22 + 0.78 * direct)
    };
    if let Some((distance, sphere)) = hit(from, along) {
        let at = add(from, scaled(along, distance));
        let normal = unit(add(at, scaled(sphere.centre, -1.0)));
        let own = lit(at, normal, sphere.colour);
        if depth == 0 {
            return own;
        }
        let mirrored = add(along, scaled(normal, -2.0 * dot(along, normal)));
        return add(
            scaled(own, 0.8),
            scaled(light(at, mirrored, depth - 1), 0.2),
        );
    }
    if along[1] < 0.0 {
        let at = add(from, scaled(along, -from[1] / along[1]));
        if at[2] < 30.0 {
            let is_dark = (at[0].floor() + at[2].floor()) as i64 % 2 == 0;
            let tile = if is_dark { 0.3 } else { 0.8 };
            return lit(at, [0.0, 1.0, 0.0], [tile, tile, 0.95 * tile]);
        }
    }
    let height = along[1].max(0.0);
    add(
        scaled([0.75, 0.8, 0.85], 1.0 - height),
        scaled([0.3, 0.5, 0.85], height),
    )
}

/// Three balls on a floor of tiles: rows of RGB.
pub fn spheres() -> Vec<u8> {
    let (columns, rows) = (256, 192);
    let mut pixels = Vec::new();
    for y in 0..rows {
        for x in 0..columns {
            let mut sum = [0.0; 3];
            for corner in 0..4 {
                let (dx, dy) = (f64::from(corner % 2), f64::from(corner / 2));
                let across = (f64::from(x) + 0.25 + dx / 2.0) / 128.0 - 1.0;
                let down = (f64::from(y) + 0.25 + dy / 2.0) / 128.0 - 0.62;
                let along = unit([0.62 * across, -0.62 * down, 1.0]);
                sum = add(sum, light([0.0, 1.05, 0.0], along, 1));
            }
            // Near the gamma of screens.
            pixels.extend(sum.map(|c| ((c / 4.0).clamp(0.0, 1.0).sqrt() * 255.0).round() as u8));
        }
    }
    pixels
}

/// Hot shapes on a cold plate: rows of grey, 128 x 96.
pub fn hot() -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..96 {
        for x in 0..128 {
            let within = |cx: i32, cy: i32, r: i32| {
                let (dx, dy) = (x - cx, y - cy);
                dx * dx + dy * dy <= r * r
            };
            let ring = within(38, 46, 26) && !within(38, 46, 18);
            let bars = (74..114).contains(&x) && (20..76).contains(&y) && (y - 20) % 16 < 6;
            let spot = within(38, 46, 7);
            pixels.push(match (ring || spot, bars) {
                (true, _) => 255,
                (_, true) => 170,
                _ => 0,
            });
        }
    }
    pixels
}
