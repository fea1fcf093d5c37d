//! The columns of a table that a terminal has room for. Figures are never broken into lines:
//! columns that may be left out are left out instead, and a table whose other columns need more
//! than the terminal has is wider than it.

use super::{Column, Table};
use weir_core::text::Escaped;

/// Longest word of a text that is not broken.
const WORD_MAX: usize = 20;
/// Blanks around a cell.
const PADDING: usize = 2;
/// Blanks between two columns.
const BETWEEN: usize = 1;

/// The columns that are shown.
pub(super) struct Room {
    /// The width of the table in characters; `None` where nothing bounds it.
    pub(super) width: Option<u16>,
    /// The numbers of the columns that are shown.
    pub(super) shown: Vec<usize>,
    /// The least width of each column that is shown, with its blanks.
    pub(super) least: Vec<u16>,
    /// The heads of the columns that are not.
    pub(super) left_out: Vec<String>,
}

impl Room {
    /// The room for `table` in `width` characters.
    pub(super) fn of(table: &Table, width: Option<u16>) -> Self {
        let least: Vec<usize> =
            table.columns.iter().enumerate().map(|(at, column)| least(table, at, column)).collect();
        let mut shown: Vec<usize> = (0..table.columns.len()).collect();
        let needed = |shown: &[usize]| -> usize {
            let columns: usize = shown.iter().filter_map(|&at| least.get(at)).sum();
            columns + BETWEEN * shown.len().saturating_sub(1)
        };
        let is_spare = |at: &usize| table.columns.get(*at).is_some_and(|column| column.spare);
        let wanted = width.map_or(usize::MAX, usize::from);
        while needed(&shown) > wanted
            && let Some(last) = shown.iter().rposition(is_spare)
        {
            shown.remove(last);
        }
        let left_out = table.columns.iter().enumerate().filter(|(at, _)| !shown.contains(at));
        let left_out = left_out.map(|(_, column)| column.text.clone()).collect();
        let in_u16 = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        Self {
            width: width.map(|width| width.max(in_u16(needed(&shown)))),
            least: shown.iter().filter_map(|&at| least.get(at)).map(|&one| in_u16(one)).collect(),
            shown,
            left_out,
        }
    }
}

/// The least width of a column: its longest figure or word.
fn least(table: &Table, at: usize, column: &Column) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.get(at));
    let cells = cells.map(|cell| match (column.figures, column.prose) {
        (true, false) => letters(&cell.text),
        (true, true) => longest_word(&cell.text),
        (false, _) => longest_word(&cell.text).min(WORD_MAX),
    });
    cells.chain([longest_word(&column.text).min(WORD_MAX)]).max().unwrap_or(0) + PADDING
}

/// The length of `text` as it is shown.
fn letters(text: &str) -> usize {
    Escaped(text).to_string().chars().count()
}

fn longest_word(text: &str) -> usize {
    Escaped(text).to_string().split(' ').map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;

    fn table() -> Table {
        let columns = vec![
            Column::words("step"),
            Column::figures("reads/s"),
            Column::figures("mean").spare(),
            Column::mixed("published").spare(),
            Column::prose("marks"),
        ];
        let row = |rate: &str| -> Vec<Cell> {
            let published = "about 1\u{2009}350\u{2009}000 op/s at 3.00 ms";
            let words = "the rate was not steady, see notes";
            vec!["reads-100".into(), rate.into(), "12.5 ms".into(), published.into(), words.into()]
        };
        Table { columns, rows: vec![row("127\u{2009}652"), row("8.13")] }
    }

    #[test]
    fn figures_are_whole_at_every_width_and_columns_are_left_out_instead() {
        let all = ["127\u{2009}652", "12.5 ms", "1\u{2009}350\u{2009}000"];
        for width in 1..=120 {
            let text = table().to_terminal_dense(false, Some(width)).to_string();
            let gone = |head: &str| {
                text.lines().any(|line| line.starts_with("  no room") && line.contains(head))
            };
            let whole = [true, !gone("mean"), !gone("published")];
            for (figure, shown) in all.into_iter().zip(whole) {
                assert_eq!(text.contains(figure), shown, "{figure} in {width}:\n{text}");
            }
            assert!(!gone("mean") || gone("published"), "the last goes first: {text}");
            let rules = text.lines().filter(|line| line.starts_with('─'));
            let widest = rules.map(|line| line.chars().count()).max().unwrap();
            let most = if gone("mean") { usize::from(width).max(31) } else { usize::from(width) };
            assert!(widest <= most, "{widest} in {width}:\n{text}");
        }
    }

    #[test]
    fn without_a_width_every_cell_is_one_line() {
        let room = Room::of(&table(), None);
        assert_eq!((room.width, room.shown.len(), room.left_out.len()), (None, 5, 0));
    }
}
