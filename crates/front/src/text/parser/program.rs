//! Parses programs: sequences of systems, connected by arrays.

use systola_ir::codes::syntax;
use systola_surface::tree::{Program, Source, Stage};

use super::{Parsed, Parser};
use crate::text::lexer::Tok;

impl Parser<'_> {
    pub(super) fn program(&mut self) -> Parsed<Program> {
        let start = self.span();
        self.advance();
        let name = self.name("the name of the program")?;
        let (params, context) = self.head()?;
        let mut program = Program {
            params,
            context,
            ..Program::new(name, start)
        };
        self.block(|p| p.program_statement(&mut program))?;
        program.origin = self.since(start).into();
        Ok(program)
    }

    fn program_statement(&mut self, program: &mut Program) -> Parsed<()> {
        match self.word() {
            Some("input" | "table") => program.inputs.push(self.plain_input()?),
            Some("output") => {
                self.advance();
                let name = self.name("the name of the output")?;
                self.expect(Tok::Assign, "`=` and where it comes from")?;
                let source = self.source()?;
                self.end_statement()?;
                program.outputs.push((name, source));
            }
            Some(_) if self.peek_at(1) == Tok::Assign => program.stages.push(self.stage()?),
            _ => {
                return self.unknown_statement(
                    &syntax::UNKNOWN_DECLARATION,
                    "program",
                    &["input", "table", "stage = system(N = …)(x = …)", "output"],
                );
            }
        }
        Ok(())
    }

    /// `first = conv1d(C = N - 2, Q = 3)(x = x, w = w);`.
    fn stage(&mut self) -> Parsed<Stage> {
        let start = self.span();
        let name = self.name("the name of a stage")?;
        self.expect(Tok::Assign, "`=`")?;
        let system = self.name("a system")?;
        let open = self.expect(Tok::LParen, "`(` and the parameters, as in `(N = 8)`")?;
        let args = self.list(open, Tok::RParen, "`)`", |p| {
            let name = p.name("a parameter of the system")?;
            p.expect(Tok::Assign, "`=` and its value")?;
            Ok((name, p.expr()?))
        })?;
        let open = self.expect(Tok::LParen, "`(` and the inputs, as in `(x = x)`")?;
        let inputs = self.list(open, Tok::RParen, "`)`", |p| {
            let name = p.name("an input of the system")?;
            p.expect(Tok::Assign, "`=` and an array")?;
            Ok((name, p.source()?))
        })?;
        self.end_statement()?;
        Ok(Stage {
            name,
            system,
            args,
            inputs,
            origin: self.since(start).into(),
        })
    }

    /// `x` or `first.z`.
    fn source(&mut self) -> Parsed<Source> {
        let base = self.name("an input of the program or an output of a stage")?;
        let output = if self.eat(Tok::Dot) {
            Some(self.name("an output of the stage")?)
        } else {
            None
        };
        let span = self.since(base.span);
        Ok(Source { base, output, span })
    }
}
