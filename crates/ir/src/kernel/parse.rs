//! Reads programs of kernels as they are printed.
//!
//! The printer shows a value that is used once in the place of its use, and makes names unique. A
//! text is therefore read back as a different structure with the same meaning, the *canonical
//! form*:
//!
//!
//! - The index variables are those that the header declares, then those that loops and dynamic
//!   block ids bind, in the order of the text.
//! - Values are numbered in the order of the text. One without a name of its own is called `v`, is
//!   assigned directly before the statement that uses it, and is uniform if its operands are.
//! - Comparisons are balanced ([`Cond::balanced`](crate::form::Cond::balanced)).
//! - Sites of faults have no span.
//!
//! Printing the canonical form gives the same text again, so reading that gives an equal program.
//! The parser does not verify: it checks that names are known and that values have types, and
//! leaves everything else to [`Program::verify`].

use std::fmt;

use crate::id::{BufferId, DimId, KernelId, ParamId};
use crate::kernel::{Buffer, BufferKind, FaultKind, FaultSite, Host, Kernel, Program, Size};
use crate::scalar::{BinOp, Literal, Scalar};
use crate::span::Span;
use crate::system::Axis;

mod expr;
pub(super) mod lexer;
mod names;
mod positions;
mod statements;
mod values;

use expr::ExprKind;
use lexer::{At, Token, TokenKind, tokens};
use names::{Named, Names};

/// The program that a text describes.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        depth: 0,
    };
    parser.program()
}

/// Where a text is not a program of kernels, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError {
            line,
            column,
            message,
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl std::error::Error for ParseError {}

/// The maximum nesting depth of loops, branches and parentheses.
const DEEPEST: usize = 200;

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

/// A launch and the name of its kernel, which is defined further down.
struct Launch {
    at: At,
    name: String,
}

impl Parser {
    /// The next token that is not a comment.
    fn peek(&mut self) -> &Token {
        while matches!(self.tokens[self.next].kind, TokenKind::Comment(_)) {
            self.next += 1;
        }
        &self.tokens[self.next]
    }

    /// The token after the next one.
    fn peek_second(&mut self) -> &Token {
        self.peek();
        self.next_token_from(self.next + 1).1
    }

    fn peek_third(&mut self) -> &Token {
        self.peek();
        let (second, _) = self.next_token_from(self.next + 1);
        self.next_token_from(second + 1).1
    }

    /// The first token from here on that is not a comment. The very last token is the end.
    fn next_token_from(&self, from: usize) -> (usize, &Token) {
        let last = self.tokens.len() - 1;
        let is_shown = |n: &usize| !matches!(self.tokens[*n].kind, TokenKind::Comment(_));
        let at = (from..last).find(is_shown).unwrap_or(last);
        (at, &self.tokens[at])
    }

    fn bump(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != TokenKind::End {
            self.next += 1;
        }
        token
    }

    fn at(&mut self) -> At {
        self.peek().at
    }

    fn expected<T>(&mut self, what: &str) -> Result<T, ParseError> {
        let token = self.peek();
        let found = token.kind.to_string();
        Err(token.at.error(format!("expected {what}, found {found}")))
    }

    fn is(&mut self, punct: &str) -> bool {
        matches!(&self.peek().kind, TokenKind::Punct(p) if *p == punct)
    }

    fn is_word(&mut self, word: &str) -> bool {
        matches!(&self.peek().kind, TokenKind::Name(name) if name == word)
    }

    fn eat(&mut self, punct: &str) -> bool {
        let is = self.is(punct);
        if is {
            self.bump();
        }
        is
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.bump();
        }
        is
    }

    fn expect(&mut self, punct: &str) -> Result<(), ParseError> {
        match self.eat(punct) {
            true => Ok(()),
            false => self.expected(&format!("`{punct}`")),
        }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        match self.eat_word(word) {
            true => Ok(()),
            false => self.expected(&format!("`{word}`")),
        }
    }

    fn name(&mut self, what: &str) -> Result<String, ParseError> {
        match &self.peek().kind {
            TokenKind::Name(name) => {
                let name = name.clone();
                self.bump();
                Ok(name)
            }
            _ => self.expected(what),
        }
    }

    fn string(&mut self, what: &str) -> Result<String, ParseError> {
        match &self.peek().kind {
            TokenKind::Text(text) => {
                let text = text.clone();
                self.bump();
                Ok(text)
            }
            _ => self.expected(what),
        }
    }

    fn literal(&mut self) -> Result<Literal, ParseError> {
        let at = self.at();
        match self.unary()?.kind {
            ExprKind::Lit(value, None) => Ok(value),
            _ => Err(at.error("expected a number or a truth value")),
        }
    }

    fn int(&mut self) -> Result<i128, ParseError> {
        let at = self.at();
        match self.literal() {
            Ok(Literal::Int(value)) => Ok(value),
            _ => Err(at.error("expected an integer")),
        }
    }

    /// A non-negative count.
    fn count(&mut self) -> Result<u32, ParseError> {
        let at = self.at();
        let value = self.int()?;
        u32::try_from(value).map_err(|_| at.error("expected a number from 0 to 2^32 - 1"))
    }

    fn scalar(&mut self) -> Result<Scalar, ParseError> {
        let at = self.at();
        let name = self.name("a type")?;
        Scalar::from_name(&name).ok_or_else(|| at.error(format!("`{name}` is no type")))
    }

    /// Calls `f` one nesting level deeper.
    fn nested<T>(
        &mut self,
        f: impl FnOnce(&mut Parser) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= DEEPEST {
            let at = self.at();
            return Err(at.error("this is nested too deeply"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Items up to a closing bracket, with commas between them.
    fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Parser) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut list = Vec::new();
        if self.eat(close) {
            return Ok(list);
        }
        loop {
            list.push(item(self)?);
            if self.eat(close) {
                return Ok(list);
            }
            if !self.eat(",") {
                return self.expected(&format!("`,` or `{close}`"));
            }
        }
    }

    fn program(&mut self) -> Result<Program, ParseError> {
        let mut names = Names::default();
        self.expect_word("program")?;
        let mut program = Program {
            name: self.name("the name of the program")?,
            params: Vec::new(),
            context: Vec::new(),
            buffers: Vec::new(),
            kernels: Vec::new(),
            host_vars: Vec::new(),
            body: Vec::new(),
        };
        self.expect("(")?;
        program.params = self.list(")", |p| p.size(&mut names))?;
        if self.eat_word("where") {
            loop {
                program.context.push(self.expr()?.cond(&names)?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect("{")?;
        while let Some(buffer) = self.buffer(&mut names)? {
            program.buffers.push(buffer);
        }
        let mut launches = Vec::new();
        let mut host = HostScope {
            names: names.clone(),
            vars: Vec::new(),
            launches: &mut launches,
        };
        program.body = self.host_body(&mut host)?;
        program.host_vars = host.vars;
        while self.peek().kind != TokenKind::End {
            let kernel = self.kernel(&program, &names)?;
            program.kernels.push(kernel);
        }
        link(&mut program, &launches)?;
        Ok(program)
    }

    fn size(&mut self, names: &mut Names) -> Result<Size, ParseError> {
        let at = self.at();
        let name = self.name("the name of a size")?;
        names.declare_next(at, &name, |n| Named::Param(ParamId::from(n)))?;
        let fixed = match self.eat("=") {
            true => Some(self.int()?),
            false => None,
        };
        Ok(Size { name, fixed })
    }

    fn buffer(&mut self, names: &mut Names) -> Result<Option<Buffer>, ParseError> {
        let kinds = ["input", "output", "temporary", "flags", "faults"];
        let Some(keyword) = kinds.into_iter().find(|word| self.is_word(word)) else {
            return Ok(None);
        };
        self.bump();
        let at = self.at();
        let name = self.name("the name of a buffer")?;
        self.expect("[")?;
        let axes = self.list("]", |p| p.axis(names))?;
        names.declare_next(at, &name, |n| Named::Buffer(BufferId::from(n)))?;
        self.expect(":")?;
        let ty = self.scalar()?;
        let kind = match keyword {
            "input" if self.eat("=") => {
                self.expect("[")?;
                let data = self.list("]", Parser::literal)?;
                BufferKind::Input { data: Some(data) }
            }
            "input" => BufferKind::Input { data: None },
            "output" => BufferKind::Output {
                fill: match self.eat_word("else") {
                    true => Some(self.literal()?),
                    false => None,
                },
            },
            "temporary" => BufferKind::Temporary,
            "flags" => BufferKind::Flags,
            _ => BufferKind::Faults {
                sites: self.fault_sites()?,
            },
        };
        // The sites of faults end with a brace.
        if keyword != "faults" {
            self.expect(";")?;
        }
        Ok(Some(Buffer {
            name,
            ty,
            kind,
            axes,
        }))
    }

    /// `N`, or `1..N`.
    fn axis(&mut self, names: &Names) -> Result<Axis, ParseError> {
        let first = self.expr()?.form(names)?;
        Ok(match self.eat("..") {
            true => Axis {
                lo: first,
                hi: self.expr()?.form(names)?,
            },
            false => Axis {
                lo: crate::form::Form::zero(),
                hi: first,
            },
        })
    }

    fn fault_sites(&mut self) -> Result<Vec<FaultSite>, ParseError> {
        self.expect("{")?;
        let mut sites = Vec::new();
        while !self.eat("}") {
            let at = self.at();
            let number = self.int()?;
            if number != sites.len() as i128 + 1 {
                return Err(at.error(format!("expected the site {}", sites.len() + 1)));
            }
            self.expect(":")?;
            let kind = self.fault_kind()?;
            self.expect_word("in")?;
            let owner = self.string("a quoted text, the owner of the fault")?;
            self.expect_word("at")?;
            self.expect("(")?;
            let iterators = self.list(")", |p| p.name("an iterator"))?;
            self.expect(";")?;
            sites.push(FaultSite {
                kind,
                owner,
                iterators,
                span: Span::NONE,
            });
        }
        Ok(sites)
    }

    fn fault_kind(&mut self) -> Result<FaultKind, ParseError> {
        if self.eat_word("division") {
            self.expect_word("by")?;
            self.expect_word("zero")?;
            self.expect("(")?;
            let op = match () {
                () if self.eat("/") => BinOp::Div,
                () if self.eat("%") => BinOp::Rem,
                () => return self.expected("`/` or `%`"),
            };
            self.expect(")")?;
            Ok(FaultKind::DivisionByZero(op))
        } else if self.eat_word("negative") {
            self.expect_word("exponent")?;
            Ok(FaultKind::NegativeExponent)
        } else if self.eat_word("outside") {
            self.expect_word("of")?;
            let input = self.string("the name of an input as a text")?;
            Ok(FaultKind::OutOfRange { input })
        } else {
            self.expected("`division by zero`, `negative exponent` or `outside of`")
        }
    }

    /// Steps of the host, up to the closing brace.
    fn host_body(&mut self, host: &mut HostScope<'_>) -> Result<Vec<Host>, ParseError> {
        let mut body = Vec::new();
        while !self.eat("}") {
            body.push(self.nested(|p| p.host_step(host))?);
        }
        Ok(body)
    }

    fn host_step(&mut self, host: &mut HostScope<'_>) -> Result<Host, ParseError> {
        if self.eat_word("launch") {
            let at = self.at();
            let name = self.name("the name of a kernel")?;
            self.expect("(")?;
            let args = self.list(")", |p| p.expr()?.form(&host.names))?;
            self.expect(";")?;
            host.launches.push(Launch { at, name });
            let kernel = KernelId::from(host.launches.len() - 1);
            Ok(Host::Launch { kernel, args })
        } else if self.eat_word("for") {
            let at = self.at();
            let name = self.name("the variable of the loop")?;
            self.expect_word("in")?;
            let (lo, hi) = self.range(&host.names)?;
            let var = host.bind(at, name)?;
            self.expect("{")?;
            let body = self.host_body(host)?;
            Ok(Host::For { var, lo, hi, body })
        } else if self.eat_word("if") {
            let cond = self.expr()?.cond(&host.names)?;
            self.expect("{")?;
            let then = self.host_body(host)?;
            let otherwise = match self.eat_word("else") {
                true => {
                    self.expect("{")?;
                    self.host_body(host)?
                }
                false => Vec::new(),
            };
            Ok(Host::If {
                cond,
                then,
                otherwise,
            })
        } else {
            self.expected("a buffer, `launch`, `for`, `if` or `}`")
        }
    }
}

struct HostScope<'l> {
    names: Names,
    vars: Vec<String>,
    launches: &'l mut Vec<Launch>,
}

impl HostScope<'_> {
    /// Loops in the two branches of an `if` may share a variable.
    fn bind(&mut self, at: At, name: String) -> Result<DimId, ParseError> {
        if let Some(Named::Var(var)) = self.names.find(&name) {
            return Ok(var);
        }
        let var = DimId::from(self.vars.len());
        self.names.declare(at, &name, Named::Var(var))?;
        self.vars.push(name);
        Ok(var)
    }
}

/// Replaces the numbers of the launches by the ids of their kernels.
fn link(program: &mut Program, launches: &[Launch]) -> Result<(), ParseError> {
    let mut kernels = Vec::new();
    for Launch { at, name } in launches {
        let is_it = |k: &Kernel| k.name == *name;
        match program.kernels.iter().position(is_it) {
            Some(n) => kernels.push(KernelId::from(n)),
            None => return Err(at.error(format!("there is no kernel `{name}`"))),
        }
    }
    set_kernels(&mut program.body, &kernels);
    Ok(())
}

fn set_kernels(body: &mut [Host], kernels: &[KernelId]) {
    for step in body {
        match step {
            Host::Launch { kernel, .. } => *kernel = kernels[kernel.index()],
            Host::For { body, .. } => set_kernels(body, kernels),
            Host::If {
                then, otherwise, ..
            } => {
                set_kernels(then, kernels);
                set_kernels(otherwise, kernels);
            }
        }
    }
}
