//! Values that are made of inputs: all operators on all types, casts, lookups.

use super::Source;
use super::equations::apply;
use super::known;
use super::system::{INTS, Sketch, is_float, is_int};

impl Sketch {
    /// Divisors of quasi-affine forms.
    pub(super) fn divisor(source: &mut Source) -> i64 {
        if known::PRECEDENCE {
            source.pick(&[3, 5, 7])
        } else {
            source.pick(&[2, 4, 2, 8, 3, 5, 7, 16])
        }
    }

    /// A quasi-affine form of a text: divided, a remainder, or both.
    pub(super) fn divided(text: &str, source: &mut Source) -> String {
        let m = Self::divisor(source);
        match source.below(5) {
            0 => format!("({text})/{m}"),
            1 => format!("({text}) % {m}"),
            2 => format!("{m}*(({text})/{m})"),
            3 => format!("(({text})/{m} + 1) % {}", Self::divisor(source)),
            _ => format!("(({text}) % {m})/2"),
        }
    }

    pub(super) fn combine(&mut self, ty: &str, a: &str, b: &str, source: &mut Source) -> String {
        let op = match ty {
            "bool" => source.pick(&["&&", "||", "^", "==", "!=", "&", "|"]),
            "f32" | "f64" => source.pick(&["+", "+", "-", "min", "max"]),
            _ => source.pick(&[
                "+", "+", "-", "*", "min", "max", "^", "&", "|", "<<", ">>", "/", "%",
            ]),
        };
        if !is_int(ty) {
            return apply(op, a, b);
        }
        match op {
            "/" | "%" => {
                let kind = if known::FAULTS { 0 } else { source.below(4) };
                if kind > 0 {
                    self.traits.insert("division by a value");
                }
                let divisor = match kind {
                    1 => format!("(({b}) & 7) + 1"),
                    2 => format!("({b}) | 1"),
                    3 if source.chance(30) => {
                        self.traits.insert("division by zero");
                        format!("({b}) & 15")
                    }
                    _ => {
                        let number = source.pick(&[3, 2, 7, 8, 16, 100, 1]);
                        let negative = ty.starts_with('i') && source.chance(30);
                        format!("{}{number}", if negative { "-" } else { "" })
                    }
                };
                format!("({a} {op} ({divisor}))")
            }
            "<<" | ">>" => {
                self.traits.insert("shift");
                if source.chance(50) {
                    apply(op, a, b)
                } else {
                    apply(op, a, &source.int(0, 9).to_string())
                }
            }
            _ => apply(op, a, b),
        }
    }

    /// One operator of one operand.
    pub(super) fn unary(&mut self, ty: &str, a: &str, source: &mut Source) -> String {
        self.traits.insert("unary operator");
        match ty {
            "bool" => format!("(!({a}))"),
            "f32" | "f64" => source.pick(&[format!("abs({a})"), format!("(-({a}))")]),
            _ => source.pick(&[
                format!("(!({a}))"),
                format!("(-({a}))"),
                format!("abs({a})"),
            ]),
        }
    }

    /// An element of another type, cast once or twice.
    pub(super) fn cast(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> String {
        self.traits.insert("cast");
        let from = source.pick(&[
            "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "bool",
        ]);
        let value = self.read(from, reach, source);
        if from == "bool" {
            return match ty {
                "bool" => value,
                "f32" | "f64" => format!("select({value}, 1.5, {ty}(0))"),
                _ => format!("{ty}({value})"),
            };
        }
        if ty == "bool" {
            return format!("({value} {} {from}(1))", source.pick(&["<", ">=", "=="]));
        }
        if is_float(from) {
            // Beyond the range of integers, where a cast saturates; as floats they would not stay
            // exact.
            let wide = if is_float(ty) {
                ""
            } else {
                source.pick(&["", " * 1000.0", " * 4000000000.0"])
            };
            return format!("{ty}({value}{wide})");
        }
        if is_float(ty) {
            // Floats must stay exact in any order of their sums.
            return format!("{ty}({value} & 63)");
        }
        if source.chance(40) {
            // By way of a float, integers of many digits are rounded once, and the largest ones
            // saturate.
            let between = source.pick(&[
                "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64",
            ]);
            format!("{ty}({between}({value}))")
        } else {
            format!("{ty}({value})")
        }
    }

    /// An element of a table at a computed index.
    pub(super) fn lookup(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> String {
        self.traits.insert("table");
        let name = format!("t{}", self.declarations.len());
        let rank = source.pick(&[1, 1, 1, 2]);
        let lengths: Vec<i64> = (0..rank)
            .map(|_| source.pick(&[4, 3, 1, 5, 8, 16]))
            .collect();
        let has_else = source.chance(30) && !known::TABLE_ELSE;
        let mut data = String::new();
        if source.chance(70) {
            data = format!(" = {}", contents(&lengths, source));
        } else {
            self.traits.insert("table given at run time");
        }
        let outside = if has_else {
            self.traits.insert("table with else");
            format!(" else {}", self.literal(ty, source).trim_start_matches('-'))
        } else {
            String::new()
        };
        let axes: Vec<String> = lengths.iter().map(i64::to_string).collect();
        let axes = axes.join(", ");
        self.declarations
            .push(format!("table {name}[{axes}]: {ty}{outside}{data};"));
        let index: Vec<String> = lengths
            .iter()
            .map(|length| {
                let value = if source.chance(60) {
                    self.traits.insert("table indexed by a value");
                    let ty = source.pick(&INTS);
                    self.read(ty, reach, source)
                } else {
                    let all: Vec<String> = self.dims.iter().chain(&self.bound).cloned().collect();
                    let (a, b) = (&all[source.pick(reach)], &all[source.pick(reach)]);
                    format!("({a} + 2*{b})")
                };
                if has_else && source.chance(60) {
                    return value;
                }
                if !known::FAULTS && source.chance(6) {
                    self.traits.insert("lookup out of range");
                    return format!("{value} & 7");
                }
                if length.count_ones() == 1 && source.chance(50) {
                    format!("{value} & {}", length - 1)
                } else {
                    format!("{value} % {length}")
                }
            })
            .collect();
        format!("{name}[{}]", index.join(", "))
    }

    /// An operation on floats that rounds, on inputs alone; nothing may be decided by its result.
    pub(super) fn rounded(
        &mut self,
        ty: &'static str,
        reach: &[usize],
        source: &mut Source,
    ) -> String {
        if self.decides {
            return self.read(ty, reach, source);
        }
        self.rounds = true;
        self.traits.insert("rounded float");
        let a = self.read(ty, reach, source);
        let b = self.read(ty, reach, source);
        match source.below(7) {
            0 => format!("({a} / 3)"),
            1 => format!("({a} * {b})"),
            2 => format!("({a} / (abs({b}) + 1))"),
            3 => format!("sqrt(abs({a}))"),
            4 => format!("exp(min({a}, 1))"),
            5 => format!("log(abs({a}) + 1)"),
            _ => format!("pow(abs({a}) + 0.5, {b} / 4)"),
        }
    }
}

/// Numbers in the shape of a table.
fn contents(lengths: &[i64], source: &mut Source) -> String {
    let Some((length, inner)) = lengths.split_first() else {
        return source.int(0, 100).to_string();
    };
    let list: Vec<String> = (0..*length).map(|_| contents(inner, source)).collect();
    format!("[{}]", list.join(", "))
}
