//! Completion.

use crate::client::Client;
use crate::{CONV, URI, opened};

#[test]
fn completion_offers_what_can_stand_there() {
    let mut client = opened(CONV);
    // Each is typed into the text, which is broken then.
    let check = |client: &mut Client, at: &str, typed: &str, with: &[&str], without: &[&str]| {
        let (before, behind) = at.split_once('|').unwrap();
        let place = format!("{before}{behind}");
        let text = CONV.replacen(&place, &format!("{before}{typed}{behind}"), 1);
        client.change(URI, &text);
        let labels = client.labels(URI, &format!("{before}{typed}|{behind}"));
        for word in with {
            assert!(
                labels.contains(&(*word).to_string()),
                "{typed}: no {word} in {labels:?}"
            );
        }
        for word in without {
            assert!(
                !labels.contains(&(*word).to_string()),
                "{typed}: {word} in {labels:?}"
            );
        }
    };
    let after_index = "in 0..C;\n|";
    check(
        &mut client,
        after_index,
        "  v",
        &["var", "index", "output"],
        &["lane", "Z", "field"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: f32 = ",
        &["x", "w", "c", "Z", "C", "scaled", "select", "reduce"],
        &["q", "bc", "lane", "var", "a"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: ",
        &["f32", "bool"],
        &["x"],
    );
    check(
        &mut client,
        after_index,
        "  input y[C]: f32 ",
        &["clamp", "else"],
        &["fixed", "x"],
    );
    check(
        &mut client,
        after_index,
        "  var Y: f32 ",
        &["reorderable", "on"],
        &[],
    );
    check(&mut client, "[c + |q]", "", &["q", "x"], &["bc"]);
    let in_tiled = "(bc, cc);\n|";
    check(
        &mut client,
        in_tiled,
        "  un",
        &["unroll", "lane", "transfer"],
        &["var", "q"],
    );
    check(
        &mut client,
        in_tiled,
        "  lane = ",
        &["bc", "cc", "c", "q", "C", "L"],
        &["x", "Z", "var"],
    );
    check(
        &mut client,
        in_tiled,
        "  transfer ",
        &["x", "w"],
        &["c", "Z"],
    );
    check(
        &mut client,
        in_tiled,
        "  transfer w to ",
        &["shared", "constant"],
        &["w"],
    );
    check(&mut client, in_tiled, "  sum ", &["Z"], &["x"]);
    check(
        &mut client,
        in_tiled,
        "  sum Z ",
        &["along", "tree"],
        &["Z"],
    );
    check(&mut client, in_tiled, "  sto", &["store"], &["Z"]);
    check(&mut client, in_tiled, "  store ", &["Z"], &["x"]);
    check(
        &mut client,
        in_tiled,
        "  store Z ",
        &["in", "modulo"],
        &["Z"],
    );
    check(
        &mut client,
        in_tiled,
        "  x.",
        &["reorder", "space_time_transform"],
        &["lane"],
    );
    check(
        &mut client,
        "|// Größe",
        "map",
        &["mapping", "system"],
        &["lane"],
    );
    check(
        &mut client,
        "mapping tiled of |conv1d",
        "",
        &["conv1d"],
        &["sbm"],
    );
    check(&mut client, "// Größe| ", "", &[], &["mapping"]);
    client.stop();
}

#[test]
fn a_program_is_completed_from_its_systems() {
    let text = format!(
        "{CONV}program p(N) where N >= 9 {{\n  input image[N]: f32;\n  \
         first = conv1d(C = N - 2, Q = 3)(x = image, w = image);\n  output y = first.z;\n}}\n"
    );
    let mut client = opened(&text);
    client.hover_until(URI, "sum |Z along", "- domain:");
    assert_eq!(client.labels(URI, "first = conv1d(|C"), ["C", "Q"]);
    assert_eq!(client.labels(URI, ")(|x = image"), ["w", "x"]);
    assert_eq!(client.labels(URI, "(x = |image"), ["first", "image"]);
    assert_eq!(client.labels(URI, "first.|z"), ["z"]);
    assert_eq!(client.labels(URI, "first = |conv1d"), ["conv1d"]);
    client.stop();
}
