//! Prints arrays for people, as `systola dump --after array` shows them.

use std::fmt;

use crate::array::{Array, Cell, Link, Port, Realisation, Reverse, Role};
use crate::form::{Cond, Form, Poly};
use crate::system::System;
use crate::system::print::display_expr;

impl fmt::Display for Realisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Realisation::Wire => "wire",
            Realisation::Register => "register",
            Realisation::Buffer => "circular buffer",
            Realisation::Shuffle => "shuffle",
            Realisation::Shared => "shared memory",
            Realisation::Launch => "global memory, next launch",
            Realisation::Flags => "global memory, flags",
            Realisation::LookBack => "global memory, look-back",
            Realisation::Reinject => "injected again",
            Realisation::Message => "message",
            Realisation::Broadcast => "broadcast",
            Realisation::Tree => "aggregation tree",
            Realisation::Hole => "don't care",
        })
    }
}

impl Realisation {
    /// A word or two, for tables, pictures and JSON.
    pub fn short_name(&self) -> &'static str {
        match self {
            Realisation::Wire => "wire",
            Realisation::Register => "register",
            Realisation::Buffer => "circular buffer",
            Realisation::Shuffle => "shuffle",
            Realisation::Shared => "shared memory",
            Realisation::Launch => "next launch",
            Realisation::Flags => "flags",
            Realisation::LookBack => "look-back",
            Realisation::Reinject => "loaded again",
            Realisation::Message => "message",
            Realisation::Broadcast => "broadcast",
            Realisation::Tree => "tree",
            Realisation::Hole => "hole",
        }
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.param_names();
        let shell = self.declarations();
        writeln!(
            f,
            "array {} of {} ({})",
            self.name,
            self.system,
            self.dims.join(", ")
        )?;
        for tile in &self.tiles {
            writeln!(
                f,
                "  tile {} by {} overlap ({}, {}) as {}",
                self.dims[tile.dim.index()],
                tile.size,
                tile.lo,
                tile.hi,
                self.dims[tile.outer.index()]
            )?;
        }
        for piece in &self.pieces {
            if self.pieces.len() > 1 {
                writeln!(f, "  when {}", piece.cond.display(&params, &self.dims))?;
            }
            for (coord, form) in self.place.iter().zip(&piece.place) {
                writeln!(
                    f,
                    "  {} = {}",
                    coord.name,
                    form.display(&params, &self.dims)
                )?;
            }
            for (coord, form) in self.time.iter().zip(&piece.time) {
                writeln!(
                    f,
                    "  {} = {}",
                    coord.name,
                    form.display(&params, &self.dims)
                )?;
            }
            self.write_reverse(f, &piece.reverse, &params)?;
        }
        for cell in self.body.iter().map(|c| &self.cells[c.index()]) {
            self.write_cell(f, cell, &shell, &params)?;
        }
        for (n, port) in self.ports.iter().enumerate() {
            self.write_port(f, n, port, &params)?;
        }
        for storage in &self.storages {
            write!(f, "  storage {}: {}", storage.name, storage.ty)?;
            for axis in &storage.axes {
                let (lo, hi) = (axis.lo.display(&params, &[]), axis.hi.display(&params, &[]));
                write!(f, "[{lo}..{hi}]")?;
            }
            match storage.output {
                Some(output) => writeln!(f, ", the output {}", self.outputs[output].name)?,
                None => writeln!(f)?,
            }
        }
        for output in &self.outputs {
            for write in &output.writes {
                writeln!(
                    f,
                    "  drain {}[{}] = {} when {}",
                    output.name,
                    list(&write.index, &params, &self.dims),
                    display_expr(&shell, &write.value, &[]),
                    write.when.display(&params, &self.dims)
                )?;
            }
        }
        for guard in &self.guards {
            let verb = if guard.kept { "test" } else { "no test" };
            writeln!(f, "  {verb}: {}: {}", guard.effect, guard.reason)?;
        }
        Ok(())
    }
}

fn list(forms: &[Form], params: &[String], dims: &[String]) -> String {
    let forms: Vec<String> = forms
        .iter()
        .map(|form| form.display(params, dims).to_string())
        .collect();
    forms.join(", ")
}

fn vector(list: &[Poly], params: &[String]) -> String {
    let parts: Vec<String> = list.iter().map(|p| p.display(params).to_string()).collect();
    format!("({})", parts.join(", "))
}

impl Array {
    fn write_reverse(
        &self,
        f: &mut fmt::Formatter<'_>,
        reverse: &Reverse,
        params: &[String],
    ) -> fmt::Result {
        let slots: Vec<String> = self
            .place
            .iter()
            .map(|c| c.name.clone())
            .chain(self.time.iter().map(|c| c.name.clone()))
            .collect();
        match reverse {
            Reverse::Scan => writeln!(f, "  reverse by scanning the fibre"),
            Reverse::Forms(forms) => {
                for (dim, (form, divisor)) in self.dims.iter().zip(forms) {
                    let form = form.display(params, &slots);
                    match divisor {
                        1 => writeln!(f, "  reverse {dim} = {form}")?,
                        _ => writeln!(
                            f,
                            "  reverse {dim} = ({form}) / {divisor}, where it divides"
                        )?,
                    }
                }
                Ok(())
            }
        }
    }

    fn write_cell(
        &self,
        f: &mut fmt::Formatter<'_>,
        cell: &Cell,
        shell: &System,
        params: &[String],
    ) -> fmt::Result {
        let depth = |d: &Option<Poly>| {
            d.as_ref()
                .map_or("?".to_string(), |d| d.display(params).to_string())
        };
        let role = match &cell.role {
            Role::Plain => String::new(),
            Role::Propagation { input, along, .. } => format!(
                ", carries {} along {}",
                self.inputs[input.index()].name,
                vector(along, params)
            ),
            Role::Carry { .. } => ", a carry".into(),
            Role::Accumulation { .. } => ", an accumulation".into(),
        };
        writeln!(
            f,
            "  cell {}: {} [{} registers, {} coalesced{role}]",
            cell.name,
            cell.ty,
            depth(&cell.registers.depth),
            depth(&cell.registers.coalesced),
        )?;
        writeln!(f, "    on {}", cell.domain.display(params, &self.dims))?;
        if let Some(kept) = &cell.kept {
            let storage = &self.storages[kept.storage.index()].name;
            let index = list(&kept.index, params, &self.dims);
            write!(f, "    kept in {storage}[{index}]")?;
            match &kept.when {
                Cond::Const(true) => writeln!(f)?,
                when => writeln!(f, " when {}", when.display(params, &self.dims))?,
            }
        }
        writeln!(f, "    = {}", display_expr(shell, &cell.body, &[]))
    }

    fn write_port(
        &self,
        f: &mut fmt::Formatter<'_>,
        n: usize,
        port: &Port,
        params: &[String],
    ) -> fmt::Result {
        writeln!(
            f,
            "  port {n}: {} from {} at distance {}",
            self.cells[port.sink.index()].name,
            self.cells[port.source.index()].name,
            vector(&port.distance, params)
        )?;
        for Link {
            guard,
            displacement,
            delay,
            realisation,
        } in &port.links
        {
            writeln!(
                f,
                "    moves {} in {} by {realisation}, when {}",
                vector(displacement, params),
                vector(delay, params),
                guard.display(params, &self.dims)
            )?;
        }
        Ok(())
    }
}
