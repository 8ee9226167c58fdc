//! CPU time of processes, independent of the load of the machine.

use std::time::Duration;

/// CPU time of a process and its descendants that still belong to it. `None` where the system does
/// not report it.
#[cfg(target_os = "linux")]
pub(crate) fn of_tree(process: u32) -> Option<Duration> {
    let ticks = ticks_of_tree(process, DEEP)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// More generations than compilers have.
#[cfg(target_os = "linux")]
const DEEP: usize = 16;

#[cfg(target_os = "linux")]
fn ticks_of_tree(process: u32, generations: usize) -> Option<u64> {
    use std::fs::read_to_string;
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of a program may hold spaces and brackets; what follows it are numbers, and the
    // state.
    let (_, fields) = stat.rsplit_once(')')?;
    // In user and kernel mode, and the same of children that ended (proc(5), fields 14 to 17).
    let own = fields.split_whitespace().skip(11).take(4);
    let mut ticks: u64 = own.filter_map(|field| field.parse::<u64>().ok()).sum();
    if generations > 0 {
        let children = read_to_string(format!("/proc/{process}/task/{process}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let child = child.parse().ok();
            // A child that ended meanwhile counts for its parent.
            ticks += child
                .and_then(|child| ticks_of_tree(child, generations - 1))
                .unwrap_or(0);
        }
    }
    Some(ticks)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_tree(_: u32) -> Option<Duration> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn computing_counts_and_waiting_does_not() {
        let own = of_tree(std::process::id()).unwrap();
        let mut sleeper = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let slept = of_tree(sleeper.id()).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(slept < Duration::from_millis(100), "{slept:?}");
        // Retries: on a busy machine a thread gets little time.
        let mut number = 1u64;
        while of_tree(std::process::id()).unwrap() < own + Duration::from_millis(50) {
            for n in 0..1_000_000 {
                number = std::hint::black_box(number.wrapping_mul(n | 1));
            }
        }
        assert_eq!(of_tree(u32::MAX), None);
    }
}
