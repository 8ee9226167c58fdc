//! The outputs of an array while they are written.

use std::collections::BTreeMap;

use systola_ir::array::Array;
use systola_ir::codes::run;
use systola_ir::{Diagnostic, Span};

use crate::system::Arrays;
use crate::tensor::Tensor;
use crate::value::{Value, literal};

/// The outputs while they are written.
pub(super) struct Targets {
    tensors: Vec<Tensor>,
    written: Vec<Vec<bool>>,
}

impl Targets {
    pub(super) fn new(array: &Array, params: &[i128]) -> Result<Targets, Diagnostic> {
        let mut tensors = Vec::new();
        let mut written = Vec::new();
        for output in &array.outputs {
            let fill = output
                .fill
                .map_or_else(|| Value::zero(output.ty), |fill| literal(output.ty, fill));
            let tensor = Tensor::filled(output.ty, &output.axes, params, &fill)
                .map_err(|e| Diagnostic::new(&run::TOO_LARGE, output.span, e.to_string()))?;
            written.push(vec![false; tensor.data.len()]);
            tensors.push(tensor);
        }
        Ok(Targets { tensors, written })
    }

    pub(super) fn write(
        &mut self,
        array: &Array,
        output: usize,
        index: &[i128],
        value: &Value,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let name = &array.outputs[output].name;
        let tensor = &mut self.tensors[output];
        let Some(position) = tensor.position(index) else {
            return Err(Diagnostic::new(
                &run::OUTPUT_OUT_OF_RANGE,
                span,
                format!("`{name}` is written at {index:?}, outside its axes"),
            ));
        };
        if std::mem::replace(&mut self.written[output][position], true) {
            return Err(Diagnostic::new(
                &run::DOUBLE_WRITE,
                span,
                format!("`{name}` is written twice at {index:?}"),
            ));
        }
        if !tensor.set(index, value) {
            return Err(Diagnostic::new(
                &run::ILL_TYPED,
                span,
                format!("`{name}` is written with a value of another type"),
            ));
        }
        Ok(())
    }

    pub(super) fn finish(self, array: &Array) -> Result<Arrays, Diagnostic> {
        let mut result = BTreeMap::new();
        for ((output, tensor), written) in array.outputs.iter().zip(self.tensors).zip(self.written)
        {
            if output.fill.is_none()
                && let Some(position) = written.iter().position(|w| !w)
            {
                return Err(Diagnostic::new(
                    &run::UNCOVERED_OUTPUT,
                    output.span,
                    format!(
                        "`{}` has no value at {:?}",
                        output.name,
                        tensor.index_of(position)
                    ),
                ));
            }
            result.insert(output.name.clone(), tensor);
        }
        Ok(result)
    }
}
