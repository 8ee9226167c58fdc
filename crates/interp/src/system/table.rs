//! One table of points for each domain, shared by the variables on it.

use std::rc::Rc;
use std::sync::Arc;

use systola_ir::{Cond, Diagnostic, Span};

use crate::code::{Env, ScanDomain};
use crate::domain::Domain;
use crate::linear::Test;
use crate::memo::{Layout, State, membership};
use crate::params::overflow;
use crate::system::report::domain_error;

/// The table of one domain, shared by all variables on it.
pub(super) struct Table {
    pub(super) layout: Rc<Layout>,
    pub(super) membership: Vec<State>,
    pub(super) scan_domain: Arc<ScanDomain>,
}

pub(super) struct Tables {
    pub(super) limit: u64,
    /// Points are numbered on first access.
    pub(super) lazy: bool,
    /// By rank and domain.
    pub(super) known: Vec<(usize, Cond, Rc<Table>)>,
}

impl Tables {
    /// The table of an equation: on points of the index space of a system, under further conditions.
    pub(super) fn of(
        &mut self,
        env: Env<'_>,
        on: &[Cond],
        span: Span,
    ) -> Result<Rc<Table>, Diagnostic> {
        let Env { system, params } = env;
        let cond = on.iter().cloned().fold(system.domain_cond(), Cond::and);
        let rank = system.dims.len();
        let mut known = self.known.iter();
        if let Some((.., table)) = known.find(|(r, c, _)| (*r, c) == (rank, &cond)) {
            return Ok(table.clone());
        }
        let failed = |e| domain_error(env, e, span, self.limit);
        let domain = Domain::new(&cond, rank, params).map_err(failed)?;
        let test = || Test::compile(&cond, params).map_err(|_| overflow(span));
        let layout = match self.lazy {
            true => Layout::lazy(test()?, rank),
            false => Layout::plan(&domain, rank, self.limit).map_err(failed)?,
        };
        let scan_domain = Arc::new(ScanDomain {
            test: test()?,
            lo: layout.lo.clone(),
        });
        let table = Rc::new(Table {
            membership: membership(&domain, &layout),
            layout: Rc::new(layout),
            scan_domain,
        });
        self.known.push((rank, cond, table.clone()));
        Ok(table)
    }
}
