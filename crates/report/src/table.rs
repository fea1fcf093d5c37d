//! A table that is written once and shown twice: in the terminal and on the page.

mod room;

use super::escape;
use super::page::plain;
use crate::terminal::{Grid, Text, columns_of_output};
use room::Room;
use std::fmt::Write as _;

/// Names of rows up to this many letters are not broken into lines on paper.
const SHORT: usize = 16;

/// The tone of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A figure like others.
    #[default]
    Plain,
    /// Within its bound.
    Good,
    /// Outside its bound.
    Bad,
    /// Beside the point, or not valid.
    Muted,
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The tone.
    pub tone: Tone,
}

impl Cell {
    /// A cell with a tone.
    #[must_use]
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// Good or bad.
    #[must_use]
    pub fn judged(text: impl Into<String>, passed: bool) -> Self {
        Self::new(text, if passed { Tone::Good } else { Tone::Bad })
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// A column's head.
#[derive(Clone, Debug)]
pub struct Column {
    /// The text.
    pub text: String,
    /// Are its cells figures, to be aligned on the right?
    pub figures: bool,
    /// Are its cells sentences, to be broken into lines?
    pub prose: bool,
    /// May a terminal that is too narrow leave the column out?
    pub spare: bool,
}

impl Column {
    /// A column of words.
    #[must_use]
    pub fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), figures: false, prose: false, spare: false }
    }

    /// A column of figures with words, aligned as figures and broken into lines.
    #[must_use]
    pub fn mixed(text: impl Into<String>) -> Self {
        Self { prose: true, ..Self::figures(text) }
    }

    /// A column of sentences.
    #[must_use]
    pub fn prose(text: impl Into<String>) -> Self {
        Self { prose: true, ..Self::words(text) }
    }

    /// A column of figures.
    #[must_use]
    pub fn figures(text: impl Into<String>) -> Self {
        Self { figures: true, ..Self::words(text) }
    }

    /// The column, which a terminal that is too narrow may leave out. The last such column is left
    /// out first.
    #[must_use]
    pub fn spare(self) -> Self {
        Self { spare: true, ..self }
    }
}

/// Rows under heads.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heads.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// For the terminal that standard output is, and as wide as it: coloured if `colour`. Figures
    /// are never broken into lines; columns that may be left out are, where there is no room for
    /// them, and their heads are told below the table.
    #[must_use]
    pub fn to_terminal(&self, colour: bool) -> Text {
        self.laid_out(colour, None, Grid::ruled())
    }

    /// The table like [`Table::to_terminal`], without lines between rows, and for a terminal of
    /// `width` characters if that is given.
    #[must_use]
    pub fn to_terminal_dense(&self, colour: bool, width: Option<u16>) -> Text {
        let mut grid = Grid::ruled();
        grid.dense();
        self.laid_out(colour, width, grid)
    }

    fn laid_out(&self, colour: bool, width: Option<u16>, mut grid: Grid) -> Text {
        let width = width.or_else(columns_of_output);
        let room = Room::of(self, width);
        let shown = &room.shown;
        if colour {
            grid.colour();
        }
        grid.head(shown.iter().filter_map(|&at| self.columns.get(at)).map(|column| &column.text));
        for row in &self.rows {
            let cells = shown.iter().filter_map(|&at| row.get(at));
            grid.toned_row(cells.map(|cell| (&cell.text, cell.tone)));
        }
        let is_figures = |at: &usize| self.columns.get(*at).is_some_and(|column| column.figures);
        let figures = shown.iter().enumerate().filter(|(_, at)| is_figures(at));
        grid.align_right(figures.map(|(place, _)| place));
        if let Some(width) = room.width {
            grid.fit(width, &room.least);
        }
        let mut text = grid.text();
        if !room.left_out.is_empty() {
            let heads = room.left_out.join(", ");
            text.line(format_args!("  no room for the columns: {heads}"));
        }
        text
    }

    /// As Markdown; a bad cell is bold.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line =
            |cells: &mut dyn Iterator<Item = String>| format!("|{}", cells.collect::<String>());
        let mut heads = self.columns.iter().map(|column| format!(" {} |", plain(&column.text)));
        let rule = |column: &Column| if column.figures { "--:|" } else { "---|" }.to_owned();
        let mut lines = vec![line(&mut heads), line(&mut self.columns.iter().map(rule))];
        lines.extend(self.rows.iter().map(|row| {
            line(&mut row.iter().map(|cell| match cell.tone {
                Tone::Bad => format!(" **{}** |", plain(&cell.text)),
                _ => format!(" {} |", plain(&cell.text)),
            }))
        }));
        lines.join("\n")
    }

    /// For a page.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for column in &self.columns {
            let class = if column.figures { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&column.text));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (number, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let tone = match cell.tone {
                    Tone::Plain => "",
                    Tone::Good => "good",
                    Tone::Bad => "bad",
                    Tone::Muted => "muted",
                };
                let kind = match (column.figures, column.prose) {
                    (true, false) => "n",
                    (true, true) => "n prose",
                    (false, true) => "prose",
                    (false, false) => "",
                };
                let short = number == 0 && cell.text.chars().count() <= SHORT;
                let class = [kind, tone, if short { "short" } else { "" }].join(" ");
                let class = class.split_whitespace().collect::<Vec<_>>().join(" ");
                let text = escape(&cell.text);
                let _ = if number == 0 {
                    write!(out, "<th scope=\"row\" class=\"{class}\">{text}</th>")
                } else {
                    write!(out, "<td class=\"{class}\">{text}</td>")
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            columns: vec![Column::words("case"), Column::figures("error")],
            rows: vec![
                vec!["auto <1>".into(), Cell::judged("+0.1 %", true)],
                vec!["manual".into(), Cell::judged("+9.0 %", false)],
            ],
        }
    }

    #[test]
    fn both_forms_carry_every_cell() {
        let (terminal, html) = (table().to_terminal(false).to_string(), table().to_html());
        for text in ["case", "error", "manual", "+0.1 %", "+9.0 %"] {
            assert!(terminal.contains(text) && html.contains(text), "{text}");
        }
        assert!(terminal.contains("auto <1>") && html.contains("auto &lt;1&gt;"));
    }

    #[test]
    fn tones_become_classes_and_colours() {
        let html = table().to_html();
        assert!(html.contains("<td class=\"n good\">+0.1 %</td>"));
        assert!(html.contains("<td class=\"n bad\">+9.0 %</td>"));
        assert!(!table().to_terminal(false).as_str().contains('\u{1b}'));
        assert!(table().to_terminal(true).as_str().contains('\u{1b}'));
    }
}
