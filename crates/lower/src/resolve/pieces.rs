//! Coordinates of places and times, and the pieces of a mapping over them.

use systola_ir::array::{PlaceCoord, TimeCoord};
use systola_ir::codes::{limits, mapping as codes};
use systola_ir::form::{Cond, Form};
use systola_ir::mapping::{PlaceLevel, TimeLevel};
use systola_ir::{Diagnostic, DimId, Span};

use super::{Coords, Pass, UserReverse};

impl Pass<'_> {
    /// A batch that no place or time uses runs on blocks of its own.
    pub(super) fn place_batch(&mut self) {
        let position = |name| self.system.dims.iter().position(|d| d.name == name);
        let Some(position) = self.batch.and_then(position) else {
            return;
        };
        let id = DimId::from(self.n_tiles + position);
        let coords = std::iter::once(&self.outside).chain(self.whens.iter().map(|(_, c)| c));
        let mentioned = coords
            .flat_map(|c| {
                let place = c.place.iter().flat_map(|(_, forms, _)| forms);
                place.chain(c.time.iter().flat_map(|(_, forms, _)| forms))
            })
            .any(|f| f.dims().contains(&id));
        if mentioned {
            return;
        }
        let form = Form::from(id);
        match self
            .outside
            .place
            .iter_mut()
            .find(|(level, ..)| *level == PlaceLevel::Block)
        {
            Some((_, forms, _)) => forms.insert(0, form),
            None => self
                .outside
                .place
                .push((PlaceLevel::Block, vec![form], Span::NONE)),
        }
    }

    /// The coordinates of slots: each level has as many as its longest list of forms.
    pub(super) fn coordinates(&self) -> (Vec<PlaceCoord>, Vec<TimeCoord>) {
        let all = || std::iter::once(&self.outside).chain(self.whens.iter().map(|(_, c)| c));
        let numbered = |name: &str, count: usize| {
            (0..count)
                .map(|n| {
                    if n == 0 {
                        name.to_string()
                    } else {
                        format!("{name}{n}")
                    }
                })
                .collect::<Vec<_>>()
        };
        let alias = |forms: Option<&Vec<Form>>, n: usize| {
            let form = forms.and_then(|forms| forms.get(n))?;
            self.names.name_of(form).map(str::to_string)
        };
        let mut place = Vec::new();
        for level in PlaceLevel::ALL {
            let own = self.outside.place.iter().find(|(l, ..)| *l == level);
            let forms = own.map(|(_, forms, _)| forms);
            let count = all()
                .flat_map(|c| &c.place)
                .filter(|(l, ..)| *l == level)
                .map(|(_, forms, _)| forms.len())
                .max()
                .unwrap_or(0);
            place.extend(
                numbered(level.name(), count)
                    .into_iter()
                    .enumerate()
                    .map(|(n, name)| PlaceCoord {
                        level,
                        name,
                        alias: alias(forms, n),
                    }),
            );
        }
        let mut time = Vec::new();
        for level in TimeLevel::ALL {
            let own = self.outside.time.iter().find(|(l, ..)| *l == level);
            let forms = own.map(|(_, forms, _)| forms);
            let count = all()
                .flat_map(|c| &c.time)
                .filter(|(l, ..)| *l == level)
                .map(|(_, forms, _)| forms.len())
                .max()
                .unwrap_or(0);
            time.extend(
                numbered(level.name(), count)
                    .into_iter()
                    .enumerate()
                    .map(|(n, name)| TimeCoord {
                        level,
                        name,
                        alias: alias(forms, n),
                    }),
            );
        }
        (place, time)
    }

    pub(super) fn pieces(
        &mut self,
        place: &[PlaceCoord],
        time: &[TimeCoord],
    ) -> Vec<(Cond, Vec<Form>, Vec<Form>)> {
        let mut errors = Vec::new();
        let mut build = |coords: &Coords, outside: &Coords| {
            let mut places = Vec::new();
            for level in PlaceLevel::ALL {
                let wanted = place.iter().filter(|c| c.level == level).count();
                let own = coords.place.iter().find(|(l, ..)| *l == level);
                let forms = own.or_else(|| outside.place.iter().find(|(l, ..)| *l == level));
                let found = forms.map_or(0, |(_, f, _)| f.len());
                if found == wanted {
                    places.extend(forms.into_iter().flat_map(|(_, f, _)| f.iter().cloned()));
                } else {
                    errors.push(uneven(level.name(), wanted, found, forms.map(|f| f.2)));
                }
            }
            let mut times = Vec::new();
            for level in TimeLevel::ALL {
                let wanted = time.iter().filter(|c| c.level == level).count();
                let own = coords.time.iter().find(|(l, ..)| *l == level);
                let forms = own.or_else(|| outside.time.iter().find(|(l, ..)| *l == level));
                let found = forms.map_or(0, |(_, f, _)| f.len());
                if found == wanted {
                    times.extend(forms.into_iter().flat_map(|(_, f, _)| f.iter().cloned()));
                } else {
                    errors.push(uneven(level.name(), wanted, found, forms.map(|f| f.2)));
                }
            }
            (places, times)
        };
        let mut earlier = Cond::TRUE;
        let mut pieces = Vec::new();
        for (cond, coords) in &self.whens {
            let (places, times) = build(coords, &self.outside);
            pieces.push((earlier.clone().and(cond.clone()), places, times));
            earlier = earlier.and(cond.clone().negate());
        }
        let (places, times) = build(&self.outside, &self.outside);
        pieces.push((earlier, places, times));
        self.errors.extend(errors);
        pieces
    }

    /// `reverse (c = lane - time, …)`: the coordinates stand for what the mapping computes.
    pub(super) fn user_reverse(
        &mut self,
        place: &[PlaceCoord],
        time: &[TimeCoord],
        pieces: &[(Cond, Vec<Form>, Vec<Form>)],
    ) {
        let written = std::mem::take(&mut self.result.user_reverse);
        if written.is_empty() {
            return;
        }
        let [(_, places, times)] = pieces else {
            self.errors.push(
                Diagnostic::new(
                    &limits::REVERSE_OF_PIECES,
                    written[0].0.span,
                    "a reverse transform is given for a mapping by pieces",
                )
                .help("leave it out: the compiler derives one for each piece"),
            );
            return;
        };
        let mut names = self.names.clone();
        for (coord, form) in place.iter().zip(places) {
            names.define(&coord.name, form.clone());
        }
        for (coord, form) in time.iter().zip(times) {
            names.define(&coord.name, form.clone());
        }
        for (name, expr) in written {
            let Some(expected) = self.names.get(&name.text).cloned() else {
                self.errors.push(self.unknown_loop(&name));
                continue;
            };
            match names.form(&expr) {
                Ok(given) => self.result.reverse.push(UserReverse {
                    name: name.text.clone(),
                    expected,
                    given,
                    span: expr.span,
                }),
                Err(error) => self.errors.push(error),
            }
        }
    }
}

fn uneven(level: &str, wanted: usize, found: usize, span: Option<Span>) -> Diagnostic {
    Diagnostic::new(
        &codes::UNEVEN_PIECES,
        span.unwrap_or(Span::NONE),
        format!("a piece of the mapping has {found} `{level}` coordinates, another has {wanted}"),
    )
    .help("give every piece the same coordinates, with 0 where one does not matter")
}
