//! Pictures, texts and raw elements in and out, animations, and the commands of `docs/data.md`.

use std::fs;
use std::path::{Path, PathBuf};

mod common;
#[path = "data/scene.rs"]
mod scene;

use common::{check, command, file, npy, root, stderr, stdout, temporary, unwrapped};

/// Rows, columns, channels and samples of 8 bits.
type Picture = (usize, usize, usize, Vec<u8>);

fn png_of(path: &Path) -> Picture {
    let file = std::io::BufReader::new(fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    assert_eq!(info.bit_depth, png::BitDepth::Eight);
    let (height, width) = (info.height as usize, info.width as usize);
    (height, width, info.color_type.samples(), data)
}

fn encode(picture: &Picture) -> Vec<u8> {
    let (rows, columns, channels, data) = picture;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, *columns as u32, *rows as u32);
    encoder.set_color(match channels {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    bytes
}

/// The frames of a GIF as indices of its palette.
fn gif_of(path: &Path) -> (usize, usize, Vec<u8>, Vec<Vec<u8>>) {
    let mut decoder = gif::DecodeOptions::new()
        .read_info(fs::File::open(path).unwrap())
        .unwrap();
    let palette = decoder.global_palette().unwrap().to_vec();
    let (rows, columns) = (decoder.height(), decoder.width());
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        frames.push(frame.buffer.to_vec());
    }
    (rows.into(), columns.into(), palette, frames)
}

/// The samples of the repository are drawn by `data/scene.rs`; `SYSTOLA_BLESS=1` writes them.
#[test]
fn the_sample_pictures_are_drawn_here() {
    for (name, picture) in [
        ("spheres.png", (192, 256, 3, scene::spheres())),
        ("hot.png", (96, 128, 1, scene::hot())),
    ] {
        let path = root().join("gallery/data").join(name);
        if std::env::var_os("SYSTOLA_BLESS").is_some() {
            fs::write(&path, encode(&picture)).unwrap();
        }
        assert!(png_of(&path) == picture, "{name}: SYSTOLA_BLESS=1 draws it");
    }
}

/// A folder with the files of the repository that a command names.
fn folder_for(name: &str, words: &[&str]) -> PathBuf {
    let folder = temporary(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for word in words {
        let path = word.rsplit(['=', ':']).next().unwrap_or(word);
        let from = root().join(path);
        if from.is_file() {
            let to = folder.join(path);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
    folder
}

/// The commands of a page.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let lines = text.lines().map(str::trim);
    let commands = lines.filter(|line| line.starts_with("systola "));
    commands.map(str::to_string).collect()
}

/// Runs a command of the page in a folder of its own; the folder and what was printed.
fn run_of_page(name: &str, part: &str) -> (PathBuf, String) {
    let found: Vec<String> = commands("docs/data.md")
        .into_iter()
        .filter(|command| command.contains(part))
        .collect();
    let [line] = &found[..] else {
        panic!("{part} is in {} commands of docs/data.md", found.len());
    };
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let folder = folder_for(name, &words);
    let output = command(&words).current_dir(&folder).output().unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{line}\n{out}\n{err}");
    (folder, out)
}

/// What the commands of the page have in common with the tests below, which run each of them.
const RUN: [&str; 5] = [
    "z=edges.png",
    "--times 20",
    "a=gallery",
    "heat.gif",
    "life.gif",
];

#[test]
fn every_command_of_the_page_is_run_by_a_test() {
    for command in commands("docs/data.md") {
        let n = RUN.iter().filter(|part| command.contains(**part)).count();
        assert_eq!(n, 1, "{command}");
    }
}

#[test]
fn sobel_of_a_photograph_is_what_loops_over_its_pixels_make() {
    let (folder, out) = run_of_page("sobel", RUN[0]);
    assert!(out.contains("luminance"), "{out}");
    let (rows, columns, channels, data) = png_of(&root().join("gallery/data/spheres.png"));
    assert_eq!((rows, columns, channels), (192, 256, 3));
    let grey = |y: i64, x: i64| {
        let y = y.clamp(0, rows as i64 - 1) as usize;
        let x = x.clamp(0, columns as i64 - 1) as usize;
        let at = 3 * (y * columns + x);
        let [r, g, b] = [0, 1, 2].map(|c| f64::from(data[at + c]));
        (0.299 * r + 0.587 * g + 0.114 * b) / 255.0
    };
    let mut expect = Vec::new();
    for y in 0..rows as i64 {
        for x in 0..columns as i64 {
            let (mut gx, mut gy) = (0.0, 0.0);
            for (d, weight) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                gx += weight * (grey(y + d, x + 1) - grey(y + d, x - 1));
                gy += weight * (grey(y + 1, x + d) - grey(y - 1, x + d));
            }
            expect.push(f64::hypot(gx, gy) / 4.0);
        }
    }
    let strongest = expect.iter().copied().fold(0.0, f64::max);
    assert!(
        (0.3..1.0).contains(&strongest),
        "{strongest}: it is not scaled"
    );
    let written = folder.join("edges.png");
    let of_page = root().join("docs/img/edges.png");
    if std::env::var_os("SYSTOLA_BLESS").is_some() {
        fs::copy(&written, &of_page).unwrap();
    }
    let shown = png_of(&of_page).3;
    let (rows, columns, channels, edges) = png_of(&written);
    assert_eq!((rows, columns, channels), (192, 256, 1));
    let near = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= 1;
    assert!(
        edges.iter().zip(&shown).all(near),
        "SYSTOLA_BLESS=1 writes docs/img/edges.png"
    );
    for (at, (edge, expect)) in edges.iter().zip(&expect).enumerate() {
        let distance = (f64::from(*edge) - 255.0 * expect).abs();
        assert!(
            distance <= 0.51,
            "pixel {at}: {edge}, not {}",
            255.0 * expect
        );
    }
}

#[test]
fn kernels_on_the_cpu_are_timed_like_those_on_a_gpu() {
    let (_, out) = run_of_page("times", RUN[1]);
    let line = out.lines().find(|line| line.contains("20 runs in a row"));
    let line = line.unwrap_or_else(|| panic!("{out}"));
    for part in ["arrays in place", "median", "best", "GB/s"] {
        assert!(line.contains(part), "{line}");
    }
    let (_, err) = check(&["run", common::CORE, "--times", "3"], 1);
    assert!(err.contains("--times goes with --target cpu"), "{err}");
}

/// The plain table.
fn levenshtein(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[test]
fn the_distance_of_two_texts_is_that_of_the_plain_table() {
    assert_eq!(levenshtein(b"kitten", b"sitting"), 3);
    let (_, out) = run_of_page("levenshtein", RUN[2]);
    let text = |name: &str| {
        let mut text = fs::read(root().join("gallery/data").join(name)).unwrap();
        assert_eq!(text.pop(), Some(b'\n'));
        text
    };
    let expect = levenshtein(&text("one.txt"), &text("two.txt"));
    assert!(expect > 20, "{expect}");
    let number = out.lines().skip_while(|line| *line != "d[]: i32").nth(1);
    assert_eq!(
        number.map(str::trim),
        Some(expect.to_string().as_str()),
        "{out}"
    );
    let (a, b) = (
        file("kitten.md", "kitten\r\n"),
        file("sitting.txt", "sitting"),
    );
    let (a, b) = (format!("a=text:{a}"), format!("b={b}"));
    let d = temporary("distance.txt");
    let out = format!("d={}", d.display());
    let program = "gallery/string/edit_distance.ure";
    check(&["run", program, "--in", &a, "--in", &b, "--out", &out], 0);
    assert_eq!(fs::read(d).unwrap(), b"3\n");
}

#[test]
fn heat_becomes_a_moving_picture() {
    let (folder, out) = run_of_page("heat", RUN[3]);
    if std::env::var_os("SYSTOLA_BLESS").is_some() {
        fs::copy(folder.join("heat.gif"), root().join("docs/img/heat.gif")).unwrap();
    }
    assert!(
        out.contains("51 pictures of 128 x 96; 0 … 1 drawn"),
        "{out}"
    );
    assert!(out.contains("20 steps from one to the next"), "{out}");
    let (rows, columns, palette, frames) = gif_of(&folder.join("heat.gif"));
    assert_eq!((rows, columns, frames.len()), (96, 128, 51));
    assert_eq!(palette.len(), 3 * 256);
    // The start, then loops over the cells.
    let (_, _, _, start) = png_of(&root().join("gallery/data/hot.png"));
    let mut u: Vec<f64> = start.iter().map(|x| f64::from(*x) / 255.0).collect();
    for (n, frame) in frames.iter().enumerate() {
        for (at, (found, u)) in frame.iter().zip(&u).enumerate() {
            let distance = (f64::from(*found) - 255.0 * u).abs();
            assert!(
                distance < 0.6,
                "frame {n}, cell {at}: {found}, not {}",
                255.0 * u
            );
        }
        for _ in 0..20 {
            let before = u.clone();
            for y in 1..rows - 1 {
                for x in 1..columns - 1 {
                    let at = y * columns + x;
                    let around = before[at - 1] + before[at + 1] + before[at - columns];
                    let around = around + before[at + columns];
                    u[at] = before[at] + 0.1 * (around - 4.0 * before[at]);
                }
            }
        }
    }
}

#[test]
fn random_life_lives_as_a_moving_picture() {
    let (folder, _) = run_of_page("life", RUN[4]);
    let (rows, columns, _, frames) = gif_of(&folder.join("life.gif"));
    assert_eq!((rows, columns, frames.len()), (96, 128, 101));
    for (n, frame) in frames.iter().enumerate() {
        let alive = frame.iter().filter(|cell| **cell == 255).count();
        let dead = frame.iter().filter(|cell| **cell == 0).count();
        assert_eq!(alive + dead, frame.len(), "frame {n}");
        assert!(
            alive > frame.len() / 50 && dead > frame.len() / 4,
            "frame {n}: {alive}"
        );
    }
    // Two steps from one picture to the next, by the rules.
    let next = |board: &[u8]| -> Vec<u8> {
        let cell = |y: usize, x: usize| usize::from(board[y % rows * columns + x % columns] == 255);
        let mut after = Vec::new();
        for y in 0..rows {
            for x in 0..columns {
                let mut three = 0;
                for (dy, dx) in (0..9).map(|n| (n / 3, n % 3)) {
                    three += cell(y + dy + rows - 1, x + dx + columns - 1);
                }
                let lives = three == 3 || (three == 4 && cell(y, x) == 1);
                after.push(if lives { 255 } else { 0 });
            }
        }
        after
    };
    for pair in frames.windows(2).take(5) {
        assert!(next(&next(&pair[0])) == pair[1]);
    }
}

const GREY: &str = "system s(N, M) where N >= 1, M >= 1 { input x[N, M]: f32; index i in 0..N, j in 0..M; \
                    var X: f32 = 2*x[i, j]; output z[N, M]: f32 = X at [i, j]; } mapping m of s { lane = j; time = i; }";

#[test]
fn frames_are_the_same_on_every_interpreter_and_target() {
    let program = "stencils/heat.ure";
    let size = ["--set", "N=6", "--set", "M=7", "--set", "T=6"];
    let films: Vec<(Vec<u8>, Vec<u8>)> = ["system", "array", "kernel", "cpu"]
        .into_iter()
        .map(|target| {
            let path = temporary(&format!("heat-{target}.png"));
            let film = format!("u={}", path.display());
            let options = [
                "--frames", "3", "--out", &film, "--verify", "--target", target,
            ];
            let mut args = vec!["run", program];
            args.extend(size);
            args.extend(options);
            if target != "system" {
                args.extend(["--map", "sweep"]);
            }
            let (out, _) = check(&args, 0);
            // Of all steps at once.
            assert!(out.contains("verified u'"), "{out}");
            let file = std::io::BufReader::new(fs::File::open(&path).unwrap());
            let mut reader = png::Decoder::new(file).read_info().unwrap();
            assert_eq!(reader.info().animation_control().unwrap().num_frames, 4);
            let mut frames = vec![vec![0; reader.output_buffer_size().unwrap()]; 4];
            for frame in &mut frames {
                reader.next_frame(frame).unwrap();
            }
            (frames[0].clone(), frames[3].clone())
        })
        .collect();
    for (start, end) in &films {
        assert_eq!(*start, films[0].0);
        let pairs = end.iter().zip(&films[0].1);
        assert!(pairs.clone().all(|(a, b)| a.abs_diff(*b) <= 1));
        assert_ne!(start, end);
    }
}

/// Adds a value to every cell in every step.
fn steps(value: &str) -> String {
    format!(
        "system steps(N, M, T) where N >= 1, M >= 1, T >= 1 {{ input u[N, M]: i64; input w[N, M]: i64; \
         index t in 0..T, y in 0..N, x in 0..M; \
         var V: i64 = select(t == 0, w[y, x], V(t - 1, y, x)) + 1; \
         var U: i64 = select(t >= 1, U(t - 1, y, x), u[y, x]) + {value}; \
         output u'[N, M]: i64 = U at [y, x] when t == T - 1; }}"
    )
}

#[test]
fn frames_that_are_not_all_steps_are_no_bug() {
    let run = |value: &str, status: i32| {
        let program = file(&format!("steps-{status}.ure"), steps(value));
        let film = format!("u={}", temporary(&format!("steps-{status}.png")).display());
        let options = ["--frames", "3", "--out", &film, "--verify"];
        check(
            &[&["run", &program, "--set", "T=6"], &options[..]].concat(),
            status,
        )
    };
    let (out, _) = run("x", 0);
    assert!(out.contains("verified u'"), "{out}");
    // `V` counts the steps from `w`, which no output becomes.
    let (out, err) = run("V(t, y, x)", 1);
    assert!(out.contains("DIFFERENT"), "{out}");
    assert!(err.contains("an input that no output becomes"), "{err}");
    assert!(!err.contains("bug"), "{err}");
}

#[test]
fn what_can_not_be_divided_into_frames_is_told_before_anything_runs() {
    let refused = |args: &[&str], part: &str| {
        let (out, err) = check(&[&["run"], args].concat(), 1);
        assert!(err.contains(part), "{part} in {err}");
        assert_eq!(out, "", "{part}");
    };
    let heat = "stencils/heat.ure";
    let film = ["--frames", "30", "--out", "u=never.gif"];
    let all = |program, more: &[&'static str]| [&[program], &film[..], more].concat();
    refused(&all(heat, &["--set", "T=100"]), "not a multiple of 30");
    refused(
        &all(heat, &["--set", "T=100"]),
        "T=90 or T=120, or --frames 25",
    );
    refused(&all(heat, &["--set", "T=7"]), "take T=30");
    refused(&all(heat, &[]), "give it: --set T=");
    refused(&[heat, "--out", "u=never.gif"], "add --frames");
    refused(&[heat, "--frames", "3", "--set", "T=3"], "needs an output");
    let numbers = ["--frames", "3", "--set", "T=3", "--out", "u=never.npy"];
    refused(&[&[heat], &numbers[..]].concat(), "needs an output");
    let grey = file("no-steps.ure", GREY);
    let still = [grey.as_str(), "--frames", "3", "--out", "z=never.gif"];
    refused(&still, "no number of steps");
    let life = [
        "gallery/stencil/life.ure",
        "--frames",
        "3",
        "--out",
        "y=never.gif",
    ];
    refused(&life, "no output of `life`");
    for value in ["t", "T", "select(t % 2 == 0, 1, 0)", "select(t == 1, 1, 0)"] {
        let program = file("of-t.ure", steps(value));
        let args = [program.as_str(), "--set", "T=30"];
        let part = "`t`, which starts at 0 in each frame";
        refused(&[&args, &film[..]].concat(), part);
    }
    assert!(!root().join("never.gif").exists());
}

#[test]
fn formats_go_in_and_out() {
    let program = file("grey.ure", GREY);
    let values: Vec<u8> = [0.0f32, 0.25, 0.5, 0.125, 0.375, 0.5]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let doubled = |ending: &str, input: &str, out: &str| {
        let z = temporary(&format!("doubled{ending}"));
        let output = format!("z={out}{}", z.display());
        let sizes = match input.ends_with(".raw") {
            true => vec!["--set", "M=3"],
            false => vec![],
        };
        let args = [
            &["run", &program, "--in", input, "--out", &output],
            &sizes[..],
        ]
        .concat();
        let (said, _) = check(&args, 0);
        (fs::read(z).unwrap(), said)
    };
    let raw = format!("x={}", file("x.raw", &values));
    let csv = format!("x={}", file("x.csv", "0, .25, .5\n.125, .375, .5 # end\n"));
    let txt = format!("x=numbers:{}", file("x.md", "0 .25 .5\n.125 .375 .5"));
    let bits = values
        .chunks(4)
        .map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let bits: Vec<i32> = bits.collect();
    let array = format!("x={}", file("formats.npy", npy("<f4", "(2, 3)", &bits)));
    for input in [&raw, &csv, &txt, &array] {
        let (written, _) = doubled(".csv", input, "");
        assert_eq!(written, b"0.0,0.5,1.0\n0.25,0.75,1.0\n", "{input}");
    }
    let (written, _) = doubled(".txt", &raw, "");
    assert_eq!(written, b"0.0 0.5 1.0\n0.25 0.75 1.0\n");
    let (written, _) = doubled(".dat", &raw, "raw:");
    assert_eq!(written.len(), 24);
    assert_eq!(written[4..8], 0.5f32.to_le_bytes());
    let (written, said) = doubled(".pgm", &raw, "");
    assert_eq!(written, b"P5\n3 2\n255\n\x00\x80\xff\x40\xbf\xff");
    assert!(!said.contains("drawn"), "{said}");
    let picture = (2, 3, 1, vec![0, 64, 128, 32, 96, 255]);
    let png = format!("x={}", file("bright.png", encode(&picture)));
    let (_, said) = doubled(".png", &png, "");
    assert!(said.contains("0 … 2 drawn as black … white"), "{said}");
    let (_, _, _, data) = png_of(&temporary("doubled.png"));
    assert_eq!(
        data, picture.3,
        "twice as bright, and scaled to what was there"
    );
}

#[test]
fn files_that_do_not_fit_are_told_with_a_code() {
    let program = file("refused.ure", GREY);
    let refused = |name: &str, bytes: &[u8], code: &str, part: &str| {
        let input = format!("x={}", file(name, bytes));
        let (out, err) = check(&["run", &program, "--in", &input], 1);
        let err = unwrapped(&err);
        assert!(err.contains(code) && err.contains(part), "{name}: {err}");
        assert_eq!(out, "", "{name}");
    };
    let good = encode(&(1, 2, 1, vec![1, 2]));
    refused("x.jpg", b"\xff\xd8", "E0623", "names no format");
    refused("x.png", b"\xff\xd8", "E0624", "damaged");
    refused("short.png", &good[..good.len() - 5], "E0624", "damaged");
    refused("x.gif", b"GIF89a", "E0624", "results only");
    refused("ragged.csv", b"1,2\n3", "E0625", "line 2 has 1 numbers");
    refused("words.csv", b"a,b\n1,2", "E0625", "line 1: `a` is no f32");
    refused("odd.raw", b"12345", "E0626", "no whole number of elements");
    let long = file("long.raw", [0; 30]);
    let input = format!("x=raw:{long}");
    let sized = [
        "run", &program, "--set", "N=2", "--set", "M=3", "--in", &input,
    ];
    let (_, err) = check(&sized, 1);
    let err = unwrapped(&err);
    let part = "it has more than the 24 bytes that the sizes ask for";
    assert!(err.contains("E0626") && err.contains(part), "{err}");
    refused(
        "open.raw",
        b"12345678",
        "E0626",
        "give the sizes of the file",
    );
    refused("empty.pgm", b"", "E0624", "none of P2");
    // A header of 10^12 pixels: the sizes are those of the first chunk, with its checksum.
    let mut huge = good.clone();
    huge[16..20].copy_from_slice(&1_000_000u32.to_be_bytes());
    huge[20..24].copy_from_slice(&1_000_000u32.to_be_bytes());
    let sum = crc(&huge[12..29]);
    huge[29..33].copy_from_slice(&sum.to_be_bytes());
    refused(
        "huge.png",
        &huge,
        "E0624",
        "promises 1000000 x 1000000 pixels",
    );
    let (out, err) = check(&["run", &program, "--out", "z=no/such/z.png"], 1);
    assert!(err.contains("no/such"), "{out}{err}");
    let conv = ["run", common::CORE, "--out", "z=never.png"];
    let (_, err) = check(&conv, 1);
    assert!(
        err.contains("E0627") && err.contains("the array has 1"),
        "{err}"
    );
    // Before the sizes are chosen, or at the latest before anything is drawn.
    for (axes, out, part) in [
        ("N, M", "z=never.ppm", "the array has none; use .pgm"),
        ("N, M, 3", "z=never.pgm", "a .pgm has no colours"),
        ("N, M, 3", "z=never.gif", "one palette"),
        ("N, M, 7", "z=never.png", "the last axis has 7"),
        ("N, M, K", "z=never.png", "the last axis has 5"),
    ] {
        let text = format!(
            "system deep(N, M, K) where N >= 1, M >= 1, K >= 1 {{ input x[N, M]: f32; \
             index i in 0..N, j in 0..M; var X: f32 = x[i, j]; \
             output z[{axes}]: f32 = X at [i, j{}] else 0.0; }}",
            if axes == "N, M" { "" } else { ", 0" }
        );
        let program = file("deep.ure", text);
        let (said, err) = check(&["run", &program, "--set", "K=5", "--out", out], 1);
        assert!(err.contains("E0627") && err.contains(part), "{out}: {err}");
        assert_eq!(said, "", "{out}");
    }
    let x = format!("x={}", file("line.png", &good));
    let (_, err) = check(&["run", common::CORE, "--in", &x], 1);
    assert!(
        err.contains("E0627") && err.contains("this one has 1"),
        "{err}"
    );
}

/// The checksum of PNG.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}
