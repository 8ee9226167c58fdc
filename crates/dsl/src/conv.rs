//! Builders of convolutions.

use systola_ir::mapping::Name;
use systola_ir::system::System;
use systola_ir::{Diagnostic, Scalar, Span};
use systola_stencil::Boundary;
use systola_surface::elaborate_conv;
use systola_surface::tree::{self, Origin};

use crate::builder::{Axis, array, batch, boundary_tree};
use crate::expr::{Expr, Range, name};

/// A convolution under construction.
///
/// ```
/// use systola_dsl::prelude::*;
///
/// let mut conv = ConvBuilder::new("halve");
/// let [r, c] = ["R", "C"].map(|p| conv.param(p));
/// conv.input("x", Scalar::F32, [&r, &c], Boundary::Mirror);
/// conv.filter("w", Scalar::F32, [5, 5]).stride([2, 2]);
/// assert_eq!(conv.build().unwrap().outputs[0].name, "z");
/// ```
#[derive(Clone, Debug)]
pub struct ConvBuilder(pub(crate) tree::Conv);

impl ConvBuilder {
    #[track_caller]
    pub fn new(text: impl Into<String>) -> Self {
        ConvBuilder(tree::Conv::new(text.into(), Origin::caller()))
    }

    pub fn param(&mut self, text: &str) -> Expr {
        self.0.params.push(Name::from(text));
        name(text)
    }

    /// `where cond`.
    pub fn context(&mut self, cond: impl Into<Expr>) -> &mut Self {
        self.0.context.push(cond.into().0);
        self
    }

    /// `input x[axes]: ty boundary;`
    #[track_caller]
    pub fn input<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
        boundary: Boundary,
    ) -> &mut Self {
        self.0.input = Some((
            array(text, ty, axes, Origin::caller()),
            boundary_tree(boundary),
        ));
        self
    }

    /// `filter w[axes]: ty;`
    #[track_caller]
    pub fn filter<A: Into<Axis>>(
        &mut self,
        text: &str,
        ty: Scalar,
        axes: impl IntoIterator<Item = A>,
    ) -> &mut Self {
        self.0.filter = Some(array(text, ty, axes, Origin::caller()));
        self
    }

    /// `batch n in 0..B shared(w);`
    #[track_caller]
    pub fn batch<'a>(
        &mut self,
        range: Range,
        shared: impl IntoIterator<Item = &'a Expr>,
    ) -> &mut Self {
        self.0.batch = Some(batch(range, shared, Origin::caller()));
        self
    }

    /// `stride 2, 2;`, one for each axis.
    pub fn stride(&mut self, strides: impl IntoIterator<Item = i128>) -> &mut Self {
        self.0.stride = Some(factors(strides));
        self
    }

    /// `dilation 2, 2;`, one for each axis.
    pub fn dilation(&mut self, dilations: impl IntoIterator<Item = i128>) -> &mut Self {
        self.0.dilation = Some(factors(dilations));
        self
    }

    /// The system, or all errors of the convolution.
    pub fn build(&self) -> Result<System, Vec<Diagnostic>> {
        elaborate_conv(self.0.clone())
    }
}

fn factors(list: impl IntoIterator<Item = i128>) -> (Vec<tree::Expr>, Span) {
    let list = list.into_iter().map(|n| Expr::from(n).0);
    (list.collect(), Span::NONE)
}
