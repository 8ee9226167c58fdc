//! Is every value that goes through memory made before it is read, where its reader sees it?

use systola_ir::codes::legality as codes;
use systola_ir::form::Form;
use systola_ir::{Diagnostic, DimId};

use super::{Checker, numbers};
use crate::dependences::reference;
use crate::failure::Failure;
use crate::storage_maps::order::{in_other_blocks, not_before, placed};
use crate::storage_maps::reads::{StoredRead, n_columns, stored_reads};

impl Checker<'_> {
    pub(super) fn stored(&self) -> Result<Vec<Diagnostic>, Failure> {
        let mut errors = Vec::new();
        for read in stored_reads(self.array) {
            errors.extend(self.stored_read(&read)?);
        }
        Ok(errors)
    }

    fn stored_read(&self, read: &StoredRead) -> Result<Option<Diagnostic>, Failure> {
        let (array, n) = (self.array, self.n());
        let here: Vec<Form> = (0..n).map(|d| Form::from(DimId::from(d))).collect();
        let readers = placed(array, &here)?;
        for maker in placed(array, &read.index)? {
            for reader in &readers {
                let late = not_before(&maker, reader);
                let live = read
                    .when
                    .clone()
                    .and(maker.cond.clone())
                    .and(reader.cond.clone());
                let question = live.clone().and(late);
                let columns = n_columns(array);
                let Some(late) = self.decide.sample(&question, columns)? else {
                    continue;
                };
                // Two blocks of one launch are another mistake than a wrong order.
                let apart = live.and(in_other_blocks(&maker, reader));
                let crosses = self.decide.sample(&apart, columns)?;
                let (crosses, (params, point)) = match crosses {
                    Some(sample) => (true, sample),
                    None => (false, late),
                };
                let made = read.index.iter().map(|f| f.eval(&params, &point));
                let made: Vec<i128> = made.collect::<Result<_, _>>()?;
                let reader = point[..n].to_vec();
                let example = self.example(&params, &[made.clone(), reader.clone()])?;
                let source = &array.cells[read.source.index()].name;
                let sink = &array.cells[read.sink.index()].name;
                let what = reference(&self.localised.system, read.source, &read.index);
                let (code, message, help) = if crosses {
                    (
                        &codes::CROSSES_BLOCKS,
                        format!("{what} is read in another block of the launch that makes it"),
                        "put the crossing into `launch`, or let both points share a block",
                    )
                } else {
                    (
                        &codes::NOT_CAUSAL,
                        format!(
                            "`{sink}` at {} reads `{source}` at {}, which is not made before",
                            numbers(&reader),
                            numbers(&made)
                        ),
                        "choose a `time` that is earlier at the point that is read",
                    )
                };
                return Ok(Some(
                    Diagnostic::new(code, self.st.time_span, message)
                        .also(read.span, format!("`{source}` is read here"))
                        .help(help)
                        .counterexample(example),
                ));
            }
        }
        Ok(None)
    }
}
