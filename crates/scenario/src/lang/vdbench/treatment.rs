//! The treatment of a word of another program's language, in one table for each language: the
//! reader obeys it and the page for users is checked against it. Shared with diskspd.

/// The treatment of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lang) enum Treatment {
    /// The word changes the load.
    Drives,
    /// The word is about the other program's reports, and is accepted.
    Reports,
    /// The word changes nothing here; that is noted with the results.
    Nothing,
    /// The word is an error.
    Refused,
}

impl Treatment {
    /// The treatment's name on the page for users.
    #[cfg(test)]
    pub(in crate::lang) const fn name(self) -> &'static str {
        match self {
            Self::Drives => "drives",
            Self::Reports => "reporting only",
            Self::Nothing => "no effect here",
            Self::Refused => "refused",
        }
    }
}

/// Checks that `page` holds `table` between the two marks, or writes it there if
/// `WEIR_BENCH_WORDS=write` is set.
#[cfg(test)]
pub(in crate::lang) fn check_page(page: &str, table: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- words: begin -->\n", "<!-- words: end -->");
    let (before, rest) = text.split_once(begin).expect("a mark where the table begins");
    let (found, after) = rest.split_once(end).expect("a mark where the table ends");
    if std::env::var("WEIR_BENCH_WORDS").is_ok_and(|value| value == "write") {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(found, table, "run the test once with WEIR_BENCH_WORDS=write");
}
