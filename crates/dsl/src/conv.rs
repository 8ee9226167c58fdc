//! Convolutions, declared step by step.

use systola_ir::system::System;
use systola_ir::{Diagnostic, Scalar};
use systola_stencil::{Border, Conv, write_conv};

use crate::builder::{Axis, SystemBuilder};
use crate::expr::{Expr, Range};
use crate::lower::lower_system;
use crate::stencil::{of_type, wrong_type};

/// A convolution that is being written.
///
/// ```
/// use systola_dsl::prelude::*;
///
/// let mut conv = ConvBuilder::new("halve");
/// let [r, c] = ["R", "C"].map(|p| conv.param(p));
/// conv.input("x", Scalar::F32, [&r, &c], Border::Mirror);
/// conv.filter("w", Scalar::F32, [5, 5]).stride([2, 2]);
/// assert_eq!(conv.build().unwrap().outputs[0].name, "z");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConvBuilder {
    head: SystemBuilder,
    border: Option<Border>,
    strides: Vec<i128>,
    dilations: Vec<i128>,
}

impl ConvBuilder {
    pub fn new(text: impl Into<String>) -> Self {
        ConvBuilder {
            head: SystemBuilder::new(text),
            ..ConvBuilder::default()
        }
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.head.param(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.head.context(cond);
        self
    }

    /// `input x[axes]: ty border;`, before the filter.
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        border: Border,
    ) -> &mut Self {
        self.border = Some(of_type(border, ty));
        self.head.input(text, ty, axes);
        self
    }

    /// `filter w[axes]: ty;`
    pub fn filter<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> &mut Self {
        self.head.input(text, ty, axes);
        self
    }

    /// `batch n in 0..B shared(w);`
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        self.head.batch(range, shared);
        self
    }

    /// `stride 2, 2;`, one for each axis.
    pub fn stride(&mut self, strides: impl IntoIterator<Item = i128>) -> &mut Self {
        self.strides = strides.into_iter().collect();
        self
    }

    /// `dilation 2, 2;`, one for each axis.
    pub fn dilation(&mut self, dilations: impl IntoIterator<Item = i128>) -> &mut Self {
        self.dilations = dilations.into_iter().collect();
        self
    }

    /// The system, or all that is wrong with the convolution.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        let n_axes = self.head.inputs.first().map_or(0, |i| i.axes.len());
        let factors = |given: &[i128]| match given.is_empty() {
            true => vec![1; n_axes],
            false => given.to_vec(),
        };
        let wrong = self.head.inputs.first().zip(self.border);
        if let Some(error) = wrong.and_then(|(input, border)| wrong_type(border, input.ty)) {
            return Err(vec![error]);
        }
        write_conv(&Conv {
            head: lower_system(&self.head)?,
            border: self.border.unwrap_or(Border::Interior),
            strides: factors(&self.strides),
            dilations: factors(&self.dilations),
        })
    }
}
