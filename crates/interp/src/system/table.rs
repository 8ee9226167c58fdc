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

pub(super) struct Tables<'a> {
    pub(super) env: Env<'a>,
    pub(super) limit: u64,
    /// Points are numbered on first access.
    pub(super) lazy: bool,
    pub(super) known: Vec<(Vec<Cond>, Rc<Table>)>,
}

impl Tables<'_> {
    pub(super) fn of(&mut self, on: &[Cond], span: Span) -> Result<Rc<Table>, Diagnostic> {
        if let Some((_, table)) = self.known.iter().find(|(known, _)| known == on) {
            return Ok(table.clone());
        }
        let Env { system, params } = self.env;
        let cond = on.iter().cloned().fold(system.domain_cond(), Cond::and);
        let rank = system.dims.len();
        let failed = |e| domain_error(self.env, e, span, self.limit);
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
        self.known.push((on.to_vec(), table.clone()));
        Ok(table)
    }
}
