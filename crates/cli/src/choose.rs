//! The mapping of a command: the one that `--map` names, else one that is chosen, and said in one
//! line.

use systola::CpuOptions;
use systola::rt::RunOptions;
use systola_driver::Machine;
use systola_explore::choose::{Choice, Subject, Why};
use systola_explore::platform::Platform;
use systola_explore::space::is_name_of_a_candidate;
use systola_explore::target_device::TargetDevice;
use systola_ir::system::System;
use systola_ir::target::Target;

use crate::runtime;
use crate::save;
use crate::source::{Failure, Sizes, Source};
use crate::term::{self, Paint};

/// What to take of a file with mappings, where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// What `systola run` would run.
    Fastest,
    /// The first of the file, for looking at it.
    First,
    /// The same; in a file without mappings an array that a picture can show.
    Readable,
}

/// Where the line about a choice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Say {
    Out,
    /// The standard output is for code.
    Err,
}

/// The options that select a mapping.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub map: Option<&'a str>,
    pub system: Option<&'a str>,
    pub sizes: &'a Sizes,
    /// Write a chosen mapping into the file under this name.
    pub save: Option<&'a str>,
    pub prefer: Prefer,
    pub say: Say,
}

/// The mapping of a command, and its system. The platform is needed only where the file does not
/// settle it.
pub fn select<'a>(
    source: &'a Source,
    wanted: &Wanted<'_>,
    platform: impl Fn() -> Result<Platform, Failure>,
) -> Result<(&'a System, Choice), Failure> {
    if let Some(name) = wanted.save {
        save::check_name(source, name)?;
    }
    let (system, choice) = find(source, wanted, &platform)?;
    tell(wanted, &choice);
    if let Some(name) = wanted.save {
        save_choice(source, &choice, &platform()?, name)?;
        say(
            wanted.say,
            &format!("mapping {name} written to {}\n", source.path),
        );
    }
    Ok((system, choice))
}

fn find<'a>(
    source: &'a Source,
    wanted: &Wanted<'_>,
    platform: &impl Fn() -> Result<Platform, Failure>,
) -> Result<(&'a System, Choice), Failure> {
    let of_system = |m: &&systola_ir::mapping::Mapping| wanted.system.is_none_or(|s| m.system == s);
    let mut own = source.module.mappings.iter().filter(of_system);
    if let Some(name) = wanted.map {
        if let Some(mapping) = own.find(|m| m.name == name) {
            let system = source.system(Some(&mapping.system))?;
            return Ok((
                system,
                Choice::named(mapping.clone(), platform_fix(platform)?),
            ));
        }
        return candidate(source, name, wanted, platform);
    }
    let first = own.next();
    let system = match (wanted.system, first) {
        (Some(name), _) => source.system(Some(name))?,
        (None, Some(first)) => source.system(Some(&first.system))?,
        (None, None) => source.system(None)?,
    };
    let platform = platform()?;
    if wanted.prefer != Prefer::Fastest
        && let Some(choice) = Choice::first(&source.module, system, &platform.fix)
    {
        return Ok((system, choice));
    }
    let subject = Subject {
        module: &source.module,
        system,
        sizes: wanted.sizes,
        platform: &platform,
    };
    let choice = match wanted.prefer {
        Prefer::Readable => subject.readable(),
        Prefer::Fastest | Prefer::First => subject.choose(),
    };
    Ok((system, choice.map_err(|found| source.fail(&found))?))
}

fn platform_fix(
    platform: &impl Fn() -> Result<Platform, Failure>,
) -> Result<systola_driver::Fix, Failure> {
    Ok(platform()?.fix)
}

/// A mapping that is not in the file, by the name that the explorer gives it.
fn candidate<'a>(
    source: &'a Source,
    name: &str,
    wanted: &Wanted<'_>,
    platform: &impl Fn() -> Result<Platform, Failure>,
) -> Result<(&'a System, Choice), Failure> {
    let unknown = || match source.mapping(Some(name), wanted.system) {
        Err(failure) => failure,
        Ok(_) => unreachable!("it is not in the file"),
    };
    if !is_name_of_a_candidate(name) {
        return Err(unknown());
    }
    let platform = platform()?;
    let systems: Vec<&System> = match wanted.system {
        Some(system) => vec![source.system(Some(system))?],
        None => source.module.systems.iter().collect(),
    };
    let mut found = Vec::new();
    for system in systems {
        let subject = Subject {
            module: &source.module,
            system,
            sizes: wanted.sizes,
            platform: &platform,
        };
        let choice = subject.named(name).map_err(|found| source.fail(&found))?;
        found.extend(choice.map(|choice| (system, choice)));
    }
    match found.len() {
        0 => Err(unknown()),
        1 => Ok(found.swap_remove(0)),
        n => {
            let names: Vec<&str> = found.iter().map(|(s, _)| s.name.as_str()).collect();
            Err(
                Failure::new(format!("{n} systems have a candidate `{name}`"))
                    .help(format!("choose one with --system {}", names.join("|"))),
            )
        }
    }
}

/// One line about a choice, and notes about stored results.
fn tell(wanted: &Wanted<'_>, choice: &Choice) {
    match (&choice.why, choice.sizes.is_empty()) {
        // A mapping of the file that was named.
        (Why::Named, true) => {}
        _ => announce(choice, wanted.say),
    }
}

/// Says what was chosen, and why.
pub fn announce(choice: &Choice, where_to: Say) {
    let head = match choice.why {
        Why::Named => "--map:",
        _ => "no --map:",
    };
    let head = match where_to {
        Say::Out => Paint::Dim.out(head),
        Say::Err => Paint::Dim.err(head),
    };
    say(where_to, &format!("{head} {choice}\n"));
    for note in &choice.notes {
        runtime::print_tuning_note(note);
    }
}

fn say(where_to: Say, text: &str) {
    match where_to {
        Say::Out => term::print(text),
        Say::Err => term::eprint(text),
    }
}

/// Writes a chosen mapping into the file.
pub fn save_choice(
    source: &Source,
    choice: &Choice,
    platform: &Platform,
    name: &str,
) -> Result<(), Failure> {
    let (chosen, mappings) = (&choice.mapping, &source.module.mappings);
    if mappings.contains(chosen) {
        return Err(Failure::new(format!(
            "--save: the mapping {} is in the file already",
            chosen.name
        ))
        .help("--save is for a mapping that was chosen from the explorer's candidates"));
    }
    let by = match choice.why {
        Why::Measured { .. } => "Found by the explorer",
        Why::Predicted { .. } | Why::Legal { .. } => "Chosen by the model",
        Why::Named | Why::First | Why::FewSteps => "Written by the explorer",
    };
    let why = match choice.why {
        Why::Named | Why::First | Why::FewSteps => String::new(),
        why => format!(": {why}"),
    };
    let comment = save::comment(by, &choice.sizes, &choice.fix, platform, &why);
    save::save(source, &comment, chosen.clone(), name)
}

/// This CPU with some options.
pub fn cpu_platform(options: &CpuOptions, threads: usize) -> Platform {
    TargetDevice::Cpu(options.clone(), RunOptions { threads }).platform()
}

/// The platform of kernels that are printed or interpreted.
pub fn platform_of(machine: &Machine, options: &CpuOptions) -> Platform {
    match machine.target {
        Target::Cpu => cpu_platform(options, 0),
        Target::Cuda | Target::OpenCl => Platform {
            cache: options.compile.cache.clone(),
            ..Platform::of(machine.clone(), options.fix.clone())
        },
    }
}
