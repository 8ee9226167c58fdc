//! What may stand at a place: words of the language and names in scope.

use std::collections::BTreeMap;

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionResponse, Documentation, MarkupContent,
    MarkupKind,
};
use systola_ir::Scalar;
use systola_surface::names::NameKind;

use crate::context::{Context, Item, context};
use crate::document::Document;
use crate::words::{self, Place, Word};

/// Words that begin an item.
const ITEMS: &[&str] = &["system", "stencil", "conv", "mapping", "program"];

pub fn complete(document: &mut Document, offset: usize) -> CompletionResponse {
    let text = std::sync::Arc::clone(&document.text);
    let context = context(&text, offset);
    let mut offer = Offer {
        visible: visible(document, offset),
        systems: BTreeMap::new(),
        stages: Vec::new(),
        items: BTreeMap::new(),
    };
    if let Context::Within(Item::Program, _) = context {
        offer.systems = interfaces(document);
        for (snapshot, _) in document.readings() {
            let stages = snapshot.tree.programs.iter().flat_map(|p| &p.stages);
            let stages = stages.map(|s| (s.name.text.clone(), s.system.text.clone()));
            offer.stages.extend(stages);
        }
    }
    match context {
        Context::Comment => {}
        Context::File(tokens) => offer.head(&tokens),
        Context::Statement(item) => {
            offer.words(statement_place(item), |_| true);
            if item == Item::Stencil {
                offer.names(|kind| kind == NameKind::Field);
            }
        }
        Context::Within(Item::Mapping, tokens) => offer.directive(&tokens),
        Context::Within(Item::Program, tokens) => offer.stage(&tokens),
        Context::Within(item, tokens) => offer.declaration(item, &tokens),
    }
    CompletionResponse::Array(offer.items.into_values().collect())
}

fn statement_place(item: Item) -> Place {
    match item {
        Item::System => Place::System,
        Item::Stencil => Place::Stencil,
        Item::Conv => Place::Conv,
        Item::Program => Place::Program,
        Item::Mapping => Place::Mapping,
    }
}

/// Names that can be used at a place, with what they stand for.
fn visible(document: &mut Document, offset: usize) -> BTreeMap<String, NameKind> {
    let mut names = BTreeMap::new();
    for (snapshot, drift) in document.readings() {
        // What is typed right now is in no older text.
        let place = drift.to_old(offset).unwrap_or(drift.prefix);
        for id in snapshot.index.visible_at(place) {
            let definition = snapshot.index.definition(id);
            let kind = names.entry(definition.name.clone());
            kind.or_insert(definition.kind);
        }
    }
    names
}

/// What is known of a system from outside.
#[derive(Debug, Default)]
struct Interface {
    params: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

fn interfaces(document: &mut Document) -> BTreeMap<String, Interface> {
    let mut systems = BTreeMap::new();
    if let Some(module) = &document.module {
        for system in &module.systems {
            let own = Interface {
                params: system.param_names(),
                inputs: system.inputs.iter().map(|i| i.name.clone()).collect(),
                outputs: system.outputs.iter().map(|o| o.name.clone()).collect(),
            };
            systems.insert(system.name.clone(), own);
        }
    }
    systems
}

struct Offer {
    visible: BTreeMap<String, NameKind>,
    systems: BTreeMap<String, Interface>,
    /// The stages of programs, with their systems.
    stages: Vec<(String, String)>,
    items: BTreeMap<String, CompletionItem>,
}

impl Offer {
    fn add(&mut self, label: &str, kind: CompletionItemKind, detail: &str) {
        let item = CompletionItem {
            label: label.to_string(),
            kind: Some(kind),
            detail: Some(detail.to_string()),
            ..CompletionItem::default()
        };
        self.items.entry(label.to_string()).or_insert(item);
    }

    fn word(&mut self, word: &Word) {
        let item = CompletionItem {
            label: word.word.to_string(),
            kind: Some(CompletionItemKind::KEYWORD),
            detail: Some(word.help.to_string()),
            documentation: Some(Documentation::MarkupContent(MarkupContent {
                kind: MarkupKind::Markdown,
                value: format!("```ure\n{}\n```", word.example),
            })),
            ..CompletionItem::default()
        };
        self.items.entry(word.word.to_string()).or_insert(item);
    }

    fn words(&mut self, place: Place, wanted: impl Fn(&str) -> bool) {
        for word in words::at(place).filter(|w| wanted(w.word)) {
            self.word(word);
        }
    }

    fn some_words(&mut self, place: Place, wanted: &[&str]) {
        self.words(place, |word| wanted.contains(&word));
    }

    fn names(&mut self, wanted: impl Fn(NameKind) -> bool) {
        let names: Vec<_> = (self.visible.iter())
            .filter(|(_, kind)| wanted(**kind))
            .map(|(name, kind)| (name.clone(), *kind))
            .collect();
        for (name, kind) in names {
            self.add(&name, item_kind(kind), kind.describe());
        }
    }

    fn types(&mut self) {
        for scalar in Scalar::ALL {
            self.add(scalar.name(), CompletionItemKind::TYPE_PARAMETER, "type");
        }
    }

    /// Between items, and in the head of one.
    fn head(&mut self, tokens: &[&str]) {
        match tokens {
            [] => self.some_words(Place::File, ITEMS),
            ["mapping", _] => self.some_words(Place::File, &["of"]),
            ["mapping", _, "of"] => self.names(NameKind::is_system),
            ["mapping", ..] | [_] | [_, _] => {}
            [_, _, rest @ ..] => match rest.iter().position(|token| *token == ")") {
                Some(_) if rest.last() == Some(&")") => self.some_words(Place::File, &["where"]),
                Some(end) if rest[end..].contains(&"where") => {
                    let params = rest[..end].iter().filter(|t| !["(", ","].contains(t));
                    for param in params {
                        self.add(param, CompletionItemKind::CONSTANT, "parameter");
                    }
                }
                Some(_) | None => {}
            },
        }
    }

    /// In a system, a stencil or a convolution.
    fn declaration(&mut self, item: Item, tokens: &[&str]) {
        let (first, last) = (tokens[0], tokens[tokens.len() - 1]);
        let has = |token| tokens.contains(&token);
        if last == ":" || tokens.ends_with(&["-", ">"]) {
            return self.types();
        }
        let in_tuple = tokens.iter().rposition(|t| *t == ":").is_some_and(|at| {
            let behind = &tokens[at + 1..];
            behind.first() == Some(&"(") && !behind.contains(&")")
        });
        if in_tuple && matches!(last, "(" | ",") {
            return self.types();
        }
        // A name is made up, not completed.
        if tokens.len() == 1 && !matches!(first, "steps" | "stride" | "dilation") {
            return;
        }
        let behind_type = has(":") && !has("=") && Scalar::from_name(last).is_some();
        match first {
            "input" | "table" | "field" | "filter" if behind_type => {
                if item == Item::System || first == "input" || first == "field" {
                    self.words(Place::Boundary, |word| {
                        item != Item::System || !matches!(word, "interior" | "fixed")
                    });
                }
                if first == "input" || first == "table" {
                    self.some_words(Place::Clause, &["else"]);
                }
                return;
            }
            "var" if behind_type && item == Item::Stencil => {
                return self.words(Place::Boundary, |word| word != "fixed");
            }
            "var" if !has("=") => {
                self.some_words(Place::Clause, &["reorderable", "associative", "on"]);
            }
            "index" | "batch" => self.some_words(Place::Clause, &["in", "where", "shared"]),
            "output" if item == Item::System => {
                self.some_words(Place::Clause, &["at", "when", "else"]);
            }
            _ => {}
        }
        self.expression(item);
    }

    fn expression(&mut self, item: Item) {
        self.names(|kind| {
            !matches!(
                kind,
                NameKind::System
                    | NameKind::Stencil
                    | NameKind::Conv
                    | NameKind::Mapping
                    | NameKind::Program
                    | NameKind::Output
                    | NameKind::Batch
                    | NameKind::Stage
                    | NameKind::TileIndex
                    | NameKind::Generated
            )
        });
        if item == Item::Conv {
            return;
        }
        self.words(Place::Expression, |_| true);
        for scalar in Scalar::ALL {
            self.add(scalar.name(), CompletionItemKind::FUNCTION, "conversion");
        }
        if item == Item::Stencil {
            self.words(Place::Neighbourhood, |_| true);
        }
    }

    /// In a mapping.
    fn directive(&mut self, tokens: &[&str]) {
        let (first, last) = (tokens[0], tokens[tokens.len() - 1]);
        if last == "." {
            return self.words(Place::Primitive, |_| true);
        }
        match tokens {
            ["forward"] => {
                return self.names(|k| k.is_array() || k == NameKind::Variable);
            }
            ["read"] => return self.names(NameKind::is_array),
            ["transfer"] => return self.names(NameKind::is_array),
            ["sum" | "broadcast" | "align" | "store"] => {
                return self.names(|k| matches!(k, NameKind::Variable | NameKind::Generated));
            }
            ["check" | "trust" | "auto" | "flags" | "look_back"] => return,
            ["forward" | "read", _] => {
                return self.some_words(Place::DirectiveClause, &["along"]);
            }
            ["store", _] => return self.some_words(Place::DirectiveClause, &["in", "modulo"]),
            ["sum", _] => return self.some_words(Place::DirectiveClause, &["along", "tree"]),
            ["tile" | "unroll", _] => return self.some_words(Place::DirectiveClause, &["by"]),
            _ => {}
        }
        let stores = ["registers", "shared", "constant"];
        match (first, last) {
            (_, "to") | ("transfer", "store_in") => {
                return self.some_words(Place::DirectiveClause, &stores);
            }
            (_, "layout") => {
                let layouts = ["columns", "pad", "rotate", "plain"];
                return self.some_words(Place::DirectiveClause, &layouts);
            }
            ("transfer", "by") => {
                let engines = ["cp_async", "bulk", "plain"];
                return self.some_words(Place::DirectiveClause, &engines);
            }
            _ => {}
        }
        if tokens.ends_with(&["store_in", "("]) {
            return self.some_words(Place::DirectiveClause, &stores);
        }
        match first {
            "tile" if !tokens.contains(&"(") => {
                self.some_words(Place::DirectiveClause, &["as", "overlap"]);
            }
            "tile" if last == ")" => {
                return self.some_words(Place::DirectiveClause, &["overlap", "periodic"]);
            }
            "transfer" if last != "at" => {
                let clauses = ["to", "stages", "layout", "by"];
                self.some_words(Place::DirectiveClause, &clauses);
                self.some_words(Place::Clause, &["at"]);
            }
            "func" => self.some_words(Place::DirectiveClause, &["device", "host"]),
            "reverse" => self.words(Place::Mapping, |w| {
                matches!(w, "lane" | "time" | "reg" | "block" | "warp" | "node")
            }),
            _ => {}
        }
        self.names(|kind| {
            matches!(
                kind,
                NameKind::Iterator
                    | NameKind::SumIterator
                    | NameKind::Batch
                    | NameKind::Parameter
                    | NameKind::TileIndex
                    | NameKind::Generated
            )
        });
        self.words(Place::Given, |_| true);
    }

    /// In a program.
    fn stage(&mut self, tokens: &[&str]) {
        let last = tokens[tokens.len() - 1];
        match tokens {
            ["input" | "table" | "output"] => return,
            ["input" | "table", ..] if last == ":" => return self.types(),
            ["input" | "table", ..] => return self.names(|k| k == NameKind::Parameter),
            ["output", _] => return,
            [_, "="] => return self.names(NameKind::is_system),
            _ => {}
        }
        if last == "." {
            let stage = tokens.len().checked_sub(2).map(|n| tokens[n]);
            let of_stage = self
                .stages
                .iter()
                .filter(|(name, _)| Some(name.as_str()) == stage);
            let names: Vec<String> = of_stage
                .filter_map(|(_, system)| self.systems.get(system))
                .flat_map(|system| system.outputs.clone())
                .collect();
            for name in names {
                self.add(&name, CompletionItemKind::PROPERTY, "output");
            }
            return;
        }
        let groups = tokens.iter().filter(|t| **t == "(").count();
        let names_one = matches!(last, "(" | ",");
        let own = tokens.get(2).and_then(|system| self.systems.get(*system));
        match (own, groups) {
            (Some(own), 1) if names_one => {
                for name in own.params.clone() {
                    self.add(&name, CompletionItemKind::CONSTANT, "parameter");
                }
            }
            (Some(own), 2) if names_one => {
                for name in own.inputs.clone() {
                    self.add(&name, CompletionItemKind::FIELD, "input");
                }
            }
            (_, 1) => self.names(|k| k == NameKind::Parameter),
            _ => self.names(|k| k.is_array() || k == NameKind::Stage),
        }
    }
}

fn item_kind(kind: NameKind) -> CompletionItemKind {
    match kind {
        NameKind::System | NameKind::Stencil | NameKind::Conv => CompletionItemKind::CLASS,
        NameKind::Mapping => CompletionItemKind::INTERFACE,
        NameKind::Program => CompletionItemKind::MODULE,
        NameKind::Parameter | NameKind::Constant => CompletionItemKind::CONSTANT,
        NameKind::Input | NameKind::Table | NameKind::Field | NameKind::Filter => {
            CompletionItemKind::FIELD
        }
        NameKind::Function => CompletionItemKind::FUNCTION,
        NameKind::Output => CompletionItemKind::PROPERTY,
        NameKind::Argument
        | NameKind::Iterator
        | NameKind::SumIterator
        | NameKind::Batch
        | NameKind::Variable
        | NameKind::Let
        | NameKind::Stage
        | NameKind::TileIndex
        | NameKind::Generated => CompletionItemKind::VARIABLE,
    }
}
