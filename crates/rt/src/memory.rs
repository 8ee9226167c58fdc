//! The memory available to this process.

use std::fs;

/// Available bytes, as far as the system reports them: free or reclaimable memory, limited by the
/// process's control group.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(from_meminfo);
    let group = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok();
    let group = group("max").zip(group("current"));
    let group = group.and_then(|(most, used)| from_group(&most, &used));
    machine.into_iter().chain(group).min()
}

fn from_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The used memory includes reclaimable file pages, so at least half of the limit counts as
/// available.
fn from_group(most: &str, used: &str) -> Option<u64> {
    let most: u64 = most.trim().parse().ok()?;
    let used: u64 = used.trim().parse().ok()?;
    Some(most.saturating_sub(used).max(most / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_read() {
        let text = "MemTotal:       25769803 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(from_meminfo(text), Some(1 << 20));
        assert_eq!(from_meminfo("MemTotal: 1 kB"), None);
        assert_eq!(from_group("1000\n", "100\n"), Some(900));
        assert_eq!(from_group("1000\n", "990\n"), Some(500));
        assert_eq!(from_group("max\n", "990\n"), None);
    }
}
