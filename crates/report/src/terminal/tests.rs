use super::*;
use crate::{Cell, Column, Table, Tone};
use proptest::prelude::*;

/// Texts with everything in them that fools a terminal.
fn texts() -> impl Strategy<Value = String> {
    let evil = prop::sample::select(vec![
        "\n",
        "\r\n",
        "\t",
        "\u{1b}[2J",
        "\u{1b}]0;title\u{7}",
        "\u{9b}31m",
        "\u{85}",
        "\u{2028}",
        "\u{2029}",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{feff}",
        "\u{7f}",
        "\u{0}",
        "\u{b}",
        "\u{c}",
        "\u{8}",
        "\u{e0041}",
        "{}",
        "\\n",
        "name",
        "│",
    ]);
    prop_oneof![any::<String>(), prop::collection::vec(evil, 0..8).prop_map(|parts| parts.concat()),]
}

/// The number of lines of `text`, which must hold only fit characters and ends of lines.
fn lines(text: &str) -> usize {
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    for letter in text.chars() {
        assert!(letter == '\n' || !commands(letter), "{text:?}");
    }
    text.lines().count()
}

/// `text` without the colours of the layout, which are all of the form `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let (code, rest) = part.split_once('m').unwrap();
        assert!(code.chars().all(|c| c.is_ascii_digit() || c == ';'), "{code:?}");
        all + rest
    })
}

proptest! {
    #[test]
    fn a_line_is_one_line(one in texts(), other in texts()) {
        let mut text = Text::new();
        text.line(&one);
        prop_assert_eq!(lines(text.as_str()), 1);
        text.line(format_args!("{one}: {other:>9} {}\n", one.len()));
        text.blank();
        text.append(&Text::from_iter([&one, &other]));
        prop_assert_eq!(lines(text.as_str()), 5);
        let mut written = Vec::new();
        line_to(&mut written, &one);
        prop_assert_eq!(lines(std::str::from_utf8(&written).unwrap()), 1);
    }

    #[test]
    fn a_row_of_a_table_is_one_row(cells in prop::collection::vec((texts(), texts()), 0..6)) {
        let mut grid = Grid::columns();
        grid.head(["a", "b"]);
        cells.iter().for_each(|(a, b)| grid.row([a, b]));
        prop_assert_eq!(lines(grid.text().as_str()), cells.len() + 1);
        for colour in [false, true] {
            let mut grid = Grid::ruled();
            grid.dense();
            if colour {
                grid.colour();
            }
            grid.head([cells.first().map_or("a", |cell| &cell.0), "b"]);
            cells.iter().for_each(|(a, b)| grid.toned_row([(a, Tone::Good), (b, Tone::Bad)]));
            let text = grid.text();
            // The head, and the rules above and below it and at the end.
            prop_assert_eq!(lines(&without_colours(text.as_str())), cells.len() + 4);
        }
        let table = Table {
            columns: vec![Column::words("a"), Column::figures("b")],
            rows: cells
                .iter()
                .map(|(a, b)| vec![Cell::from(a.clone()), Cell::judged(b.clone(), true)])
                .collect(),
        };
        lines(&without_colours(table.to_terminal(true).as_str()));
    }

    #[test]
    fn what_changes_stays_on_its_line(text in texts()) {
        let shown = status(&text);
        let inner = shown.strip_prefix('\r').and_then(|rest| rest.strip_suffix("\u{1b}[K"));
        prop_assert!(!inner.unwrap().contains(commands));
    }

    #[test]
    fn a_document_keeps_its_lines_and_nothing_else(text in texts()) {
        let safe = of_document(&text);
        prop_assert!(!safe.contains(|c| c != '\n' && c != '\t' && commands(c)));
        prop_assert_eq!(safe.matches('\n').count(), text.matches('\n').count());
    }
}

#[test]
fn a_reader_that_went_away_ends_nothing() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    line_to(&mut Gone, "unread");
    let mut read = Vec::new();
    line_to(&mut read, "read");
    assert_eq!(read, b"read\n");
}

#[test]
fn a_terminal_without_a_size_has_no_columns_to_keep_to() {
    let terminal = std::fs::File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    assert_eq!(columns_of(&terminal), None);
    let mut size = tcgetwinsize(&terminal).unwrap();
    size.ws_col = 80;
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    assert_eq!(columns_of(&terminal), Some(80));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(columns_of(&file), None);
}
