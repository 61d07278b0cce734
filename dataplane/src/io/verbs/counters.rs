//! Counters that the kernel shows of a device's port: how much they grow during a run.
//!
//! Source: Linux, `Documentation/ABI/stable/sysfs-class-infiniband` (`counters`, `hw_counters`).

use super::discovery::{CLASS, Place};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// By name.
pub type Counters = BTreeMap<String, u64>;

/// Of both folders; what can't be read as a number is left out, as is what is none of counting.
pub fn read(place: &Place) -> Counters {
    let port = Path::new(CLASS).join(&place.device).join("ports").join(place.port.to_string());
    let mut counters = Counters::new();
    for folder in ["counters", "hw_counters"] {
        for file in fs::read_dir(port.join(folder)).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            if let (Ok(value), true) = (text.trim().parse(), name != "lifespan") {
                counters.insert(name, value);
            }
        }
    }
    counters
}

/// How much each has grown; one that went back started anew.
pub fn growth(before: &Counters, after: &Counters) -> Counters {
    let grown = |name: &String, now: u64| match before.get(name) {
        Some(&earlier) if earlier <= now => now - earlier,
        _ => now,
    };
    after.iter().map(|(name, &now)| (name.clone(), grown(name, now))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_by_how_much_they_grow() {
        let of = |rows: &[(&str, u64)]| -> Counters {
            rows.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let before = of(&[("sent_pkts", 10), ("out_of_seq_request", 9)]);
        let after = of(&[("sent_pkts", 25), ("out_of_seq_request", 4), ("new", 3)]);
        let expected = of(&[("sent_pkts", 15), ("out_of_seq_request", 4), ("new", 3)]);
        assert_eq!(growth(&before, &after), expected);
    }
}
