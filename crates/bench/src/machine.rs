//! On what machine a report's figures were taken.

use crate::cluster::this_machine;
use weir_results::pages::machine_in_words;

/// Processors, memory, kernel and system of this machine, in one line; what can't be read is left
/// out.
#[must_use]
pub fn describe() -> String {
    machine_in_words(&this_machine())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_the_processors_in_one_line() {
        let text = super::describe();
        assert!(text.contains(" processor") && !text.contains('\n'), "{text}");
    }
}
