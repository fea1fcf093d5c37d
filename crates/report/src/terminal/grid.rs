//! Tables for a terminal. Cells are escaped when they are put in, so that the lines that come out
//! are the layout's.

use super::Text;
use crate::Tone;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Width,
    presets,
};
use std::fmt::Display;
use weir_core::text::Escaped;

/// Rows under heads.
pub struct Grid {
    table: comfy_table::Table,
    ruled: bool,
    colour: bool,
}

impl Grid {
    /// Columns two blanks apart, without rules.
    #[must_use]
    pub fn columns() -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        Self { table, ruled: false, colour: false }
    }

    /// A grid with rules between head and rows, and between rows.
    #[must_use]
    pub fn ruled() -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        Self { table, ruled: true, colour: false }
    }

    /// Takes the rules between rows away.
    pub fn dense(&mut self) {
        self.table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    }

    /// Breaks long cells into lines, so that the table is at most `width` characters wide. The
    /// columns, which must be there already, keep at least the widths in `least`, which together
    /// must fit.
    pub(crate) fn fit(&mut self, width: u16, least: &[u16]) {
        self.table.set_content_arrangement(ContentArrangement::Dynamic);
        self.table.set_width(width);
        for (column, least) in self.table.column_iter_mut().zip(least) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(*least)));
        }
    }

    /// Shows tones as colours, and heads in bold.
    pub fn colour(&mut self) {
        self.colour = true;
        self.table.enforce_styling();
    }

    /// Sets the heads.
    pub fn head<T: Display>(&mut self, heads: impl IntoIterator<Item = T>) {
        let colour = self.colour;
        self.table.set_header(heads.into_iter().map(|head| {
            let head = Cell::new(Escaped(head));
            if colour { head.add_attribute(Attribute::Bold) } else { head }
        }));
    }

    /// Adds a row.
    pub fn row<T: Display>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.toned_row(cells.into_iter().map(|cell| (cell, Tone::Plain)));
    }

    /// Adds a row of cells with tones.
    pub fn toned_row<T: Display>(&mut self, cells: impl IntoIterator<Item = (T, Tone)>) {
        let colour = self.colour;
        self.table.add_row(cells.into_iter().map(|(cell, tone)| {
            let shown = Cell::new(Escaped(cell));
            match (colour, tone) {
                (true, Tone::Good) => shown.fg(Color::Green),
                (true, Tone::Bad) => shown.fg(Color::Red).add_attribute(Attribute::Bold),
                (true, Tone::Muted) => shown.fg(Color::DarkGrey),
                _ => shown,
            }
        }));
    }

    /// Aligns the columns with these numbers on the right.
    pub fn align_right(&mut self, columns: impl IntoIterator<Item = usize>) {
        for number in columns {
            if let Some(column) = self.table.column_mut(number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    /// The lines of the table. Each ends where its text does, for a caller that cuts lines up.
    #[must_use]
    pub fn text(mut self) -> Text {
        if !self.ruled {
            self.table.column_iter_mut().for_each(|column| {
                column.set_padding((0, 2));
            });
        }
        let lines: String =
            self.table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        Text(lines)
    }
}
