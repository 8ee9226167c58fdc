//! Bytes that are loaded or stored together, as words.
//!
//! A compiler that sees an array of bytes in registers extracts and joins them with shifts and
//! masks, three to five instructions for each. A permutation of the bytes of two words is one
//! instruction: one of them extracts a byte from a word, and three join four bytes into a word.

use systola_ir::Scalar;

use crate::error::Fault;
use crate::expr::Expr;
use crate::prelude::{File, Prelude};
use crate::scalar::c_type;

/// Bytes of a word.
pub const IN_A_WORD: u32 = 4;

/// The function that joins bytes into a word.
pub const JOIN: &str = "word_of";

/// The number of words that hold `n` elements, if these are bytes.
pub fn words(element: Scalar, n: u32) -> Option<u32> {
    (element.bits() == 8 && n.is_multiple_of(IN_A_WORD)).then_some(n / IN_A_WORD)
}

/// Adds the functions that the others call.
pub fn add(prelude: &mut Prelude) {
    prelude.add("byte_of", File::Cuda, "byte_of", &[]);
    prelude.add(JOIN, File::Cuda, JOIN, &[]);
}

/// A byte of a pack of words.
pub fn element(element: Scalar, pack: &str, n: u32) -> Result<Expr, Fault> {
    let (word, byte) = (n / IN_A_WORD, n % IN_A_WORD);
    let word = Expr::atom(format!("{pack}.at[{word}]"));
    let byte = Expr::call("byte_of", &[word, Expr::atom(byte.to_string())]);
    Ok(Expr::cast(c_type(element)?, &byte))
}

/// A pack of words made from bytes.
pub fn joined(bytes: &[&str]) -> String {
    let words = bytes.chunks(IN_A_WORD as usize);
    let words: Vec<String> = words.map(|w| format!("{JOIN}({})", w.join(", "))).collect();
    format!("{{{}}}", words.join(", "))
}
