//! Links the programs of several arrays: the parts of a sum, the combined parts, and the array that
//! uses them.

use systola_ir::kernel::{Buffer, BufferKind, Host, Memory, Program};
use systola_ir::{BufferId, KernelId};

use crate::emit::fault_sites::join_faults;
use crate::passes::tidy::move_memories;

/// Puts the launches of `parts` and `joined` before every launch of `rest`. `joined` reads what
/// `parts` writes, and `rest` reads what `joined` writes: these buffers become temporaries.
pub fn link(mut parts: Program, mut joined: Program, mut rest: Program) -> Program {
    let names = |program: &Program| -> Vec<String> {
        program.buffers.iter().map(|b| b.name.clone()).collect()
    };
    let is_output = |kind: &BufferKind| matches!(kind, BufferKind::Output { .. });
    let handed = |program: &Program| -> Vec<String> {
        let outputs = program.buffers.iter().filter(|b| is_output(&b.kind));
        outputs.map(|b| b.name.clone()).collect()
    };
    join_faults(&mut [&mut parts, &mut joined], &mut rest);
    let (from_parts, from_joined) = (handed(&parts), handed(&joined));
    for program in [&mut parts, &mut joined] {
        for buffer in &mut program.buffers {
            match buffer.kind {
                BufferKind::Temporary | BufferKind::Flags => {
                    buffer.name = Buffer::unused_name(&buffer.name, &rest.buffers);
                    rest.buffers.push(buffer.clone());
                }
                BufferKind::Input { .. }
                | BufferKind::Output { .. }
                | BufferKind::Faults { .. } => {}
            }
        }
    }
    for mut buffer in parts.buffers.clone() {
        if from_parts.contains(&buffer.name) {
            buffer.kind = BufferKind::Temporary;
            rest.buffers.push(buffer);
        }
    }
    for buffer in &mut rest.buffers {
        if from_joined.contains(&buffer.name) {
            buffer.kind = BufferKind::Temporary;
        }
    }
    let known = names(&rest);
    let mut first = Vec::new();
    let args = launch_args(&rest.body);
    for program in [parts, joined] {
        let place: Vec<Option<usize>> = names(&program)
            .iter()
            .map(|name| known.iter().position(|k| k == name))
            .collect();
        let offset = rest.kernels.len();
        for mut kernel in program.kernels {
            move_memories(&mut kernel, &|memory| {
                if let Memory::Global(id) = memory {
                    match place[id.index()] {
                        Some(at) => *id = BufferId::from(at),
                        None => unreachable!("a buffer that only one of the programs has"),
                    }
                }
            });
            rest.kernels.push(kernel);
        }
        let mut launches = Vec::new();
        innermost(&program.body, &mut launches);
        for launch in launches {
            first.push(Host::Launch {
                kernel: KernelId::from(launch.0.index() + offset),
                args: if launch.1 == 0 {
                    Vec::new()
                } else {
                    args.clone()
                },
            });
        }
    }
    before_launches(&mut rest.body, &mut first);
    rest
}

/// The arguments of the first launch.
fn launch_args(body: &[Host]) -> Vec<systola_ir::Form> {
    match body.first() {
        Some(Host::Launch { args, .. }) => args.clone(),
        Some(Host::For { body, .. }) => launch_args(body),
        Some(Host::If { then, .. }) => launch_args(then),
        None => Vec::new(),
    }
}

/// The kernels that are launched, with the number of their arguments.
fn innermost(body: &[Host], found: &mut Vec<(KernelId, usize)>) {
    for step in body {
        match step {
            Host::Launch { kernel, args } => found.push((*kernel, args.len())),
            Host::For { body, .. } => innermost(body, found),
            Host::If { .. } => unreachable!("parts of a sum have one kernel"),
        }
    }
}

fn before_launches(body: &mut Vec<Host>, first: &mut Vec<Host>) {
    match body.first_mut() {
        Some(Host::For { body, .. }) => before_launches(body, first),
        Some(Host::Launch { .. } | Host::If { .. }) | None => {
            first.append(body);
            std::mem::swap(body, first);
        }
    }
}
