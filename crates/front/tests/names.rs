//! The index of names against the elaborator, on every program of the repository.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use systola_front::{parse_module, parse_tree};
use systola_ir::system::{Module, System};
use systola_surface::names::{Index, NameKind, Role};

fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("gallery"), root.join("stencils")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ure") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Everything in a system that has a name.
fn names_of(system: &System) -> HashSet<&str> {
    let params = system.params.iter().map(|p| &p.name);
    let dims = system.dims.iter().chain(&system.bound).map(|d| &d.name);
    let inputs = system.inputs.iter().map(|i| &i.name);
    let vars = system.vars.iter().map(|v| &v.name);
    let outputs = system.outputs.iter().map(|o| &o.name);
    let consts = system.consts.iter().map(|c| &c.name);
    let functions = system.functions.iter().map(|f| &f.name);
    let own = system.vars.iter().flat_map(|v| v.own.iter().flatten());
    let dims = dims.chain(own.map(|d| &d.name));
    let all = params.chain(dims).chain(inputs).chain(vars);
    let all = all.chain(outputs).chain(consts).chain(functions);
    let batch = system.batch.iter().map(|b| &b.name);
    all.chain(batch).map(String::as_str).collect()
}

#[test]
fn every_name_of_every_program_is_known() {
    let files = programs();
    assert!(files.len() > 80, "{} files", files.len());
    let mut n_references = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (tree, errors) = parse_tree(&text);
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
        let index = Index::of(&tree);
        let module = parse_module(&text).unwrap();
        assert!(
            index.unknown.is_empty(),
            "{}: {:?}",
            file.display(),
            index.unknown
        );
        check_spans(&file, &text, &index);
        check_definitions(&file, &index, &module);
        n_references += index.references.len();
    }
    assert!(n_references > 9_000, "{n_references}");
}

/// The text under each reference is the name, and no two overlap.
fn check_spans(file: &Path, text: &str, index: &Index) {
    for reference in &index.references {
        let name = &index.definition(reference.definition).name;
        assert_eq!(
            &text[reference.span.range()],
            name,
            "{} at {:?}",
            file.display(),
            reference.span
        );
    }
    for pair in index.references.windows(2) {
        assert!(pair[0].span.end <= pair[1].span.start, "{}", file.display());
    }
}

/// Systems, and mappings and programs beside them, have the names that the index says.
fn check_definitions(file: &Path, index: &Index, module: &Module) {
    let file = file.display();
    for system in &module.systems {
        let names = names_of(system);
        let owner = (index.definitions.iter())
            .position(|d| d.kind.is_system() && d.name == system.name)
            .unwrap_or_else(|| panic!("{file}: no system {}", system.name));
        let own: Vec<_> = (index.definitions.iter())
            .filter(|d| d.owner.is_some_and(|o| o.0 == owner))
            .collect();
        for definition in &own {
            let name = definition.name.as_str();
            if !definition.kind.is_local() && !names.contains(name) {
                // Generated names that a mapping does not use are a guess.
                let used = index
                    .references
                    .iter()
                    .any(|r| index.definition(r.definition).name == name && r.role == Role::Reads);
                let guess = definition.kind == NameKind::Generated && !used;
                assert!(guess, "{file}: {name} in {}", system.name);
            }
        }
        if index.definitions[owner].kind == NameKind::System {
            for name in names {
                assert!(
                    own.iter().any(|d| d.name == name),
                    "{file}: {name} is not found"
                );
            }
        }
    }
    let count = |kind| index.definitions.iter().filter(|d| d.kind == kind).count();
    assert_eq!(count(NameKind::Mapping), module.mappings.len(), "{file}");
    assert_eq!(count(NameKind::Program), module.programs.len(), "{file}");
}
