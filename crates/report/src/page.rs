//! A page of a report, built from blocks: as one self-contained HTML file, or as Markdown without
//! its charts.

use super::escape;
use super::table::Table;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// One figure that stands out at the head of a page.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The figure.
    pub value: String,
    /// The label.
    pub label: String,
}

/// A page under construction.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
enum Block {
    Outcome { class: &'static str, word: String, sentence: String },
    Facts(Vec<Fact>),
    Section(String),
    Chapter { id: String, heading: String },
    Subsection(String),
    Contents(Vec<(String, String)>),
    Alert { heading: String, sentences: Vec<String> },
    Code(String),
    Paragraph(String),
    List(Vec<String>),
    Table(Table),
    Details { summary: String, tables: Vec<Table> },
    Figure { svg: String, caption: String },
    Grid(Vec<String>),
    ScrolledGrid(Vec<String>),
    DetailsGrid { open: bool, summary: String, charts: Vec<String> },
}

impl Page {
    /// A page with a title and a paragraph under it.
    #[must_use]
    pub fn new(title: &str, lead: &str) -> Self {
        Self { title: title.to_owned(), lead: lead.to_owned(), blocks: Vec::new() }
    }

    /// The outcome in a sentence.
    pub fn verdict(&mut self, passed: bool, sentence: &str) {
        self.judgement(passed, if passed { "Pass" } else { "Miss" }, sentence);
    }

    /// The outcome in a word and a sentence, where it is neither good nor bad.
    pub fn remark(&mut self, word: &str, sentence: &str) {
        self.outcome("neither", word, sentence);
    }

    /// A good or bad outcome in a word of the caller's.
    pub fn judgement(&mut self, good: bool, word: &str, sentence: &str) {
        self.outcome(if good { "pass" } else { "miss" }, word, sentence);
    }

    fn outcome(&mut self, class: &'static str, word: &str, sentence: &str) {
        let (word, sentence) = (word.to_owned(), sentence.to_owned());
        self.blocks.push(Block::Outcome { class, word, sentence });
    }

    /// A row of figures that stand out.
    pub fn facts(&mut self, facts: &[Fact]) {
        self.blocks.push(Block::Facts(facts.to_vec()));
    }

    /// Begins a section.
    pub fn section(&mut self, heading: &str) {
        self.blocks.push(Block::Section(heading.to_owned()));
    }

    /// Begins a section that is a target of [`Page::contents`].
    pub fn chapter(&mut self, id: &str, heading: &str) {
        self.blocks.push(Block::Chapter { id: id.to_owned(), heading: heading.to_owned() });
    }

    /// Begins a part of a section.
    pub fn subsection(&mut self, heading: &str) {
        self.blocks.push(Block::Subsection(heading.to_owned()));
    }

    /// The table of contents: ids of chapters and their headings.
    pub fn contents<'a>(&mut self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let entries = entries.into_iter().map(|(id, heading)| (id.to_owned(), heading.to_owned()));
        self.blocks.push(Block::Contents(entries.collect()));
    }

    /// A warning to be read before the figures: a heading and sentences.
    pub fn alert(&mut self, heading: &str, sentences: impl IntoIterator<Item = String>) {
        let sentences = sentences.into_iter().collect();
        self.blocks.push(Block::Alert { heading: heading.to_owned(), sentences });
    }

    /// Text to copy, shown literally.
    pub fn code(&mut self, text: &str) {
        self.blocks.push(Block::Code(text.to_owned()));
    }

    /// Small charts side by side that can be folded away, and are shown from the start if `open`;
    /// always on paper.
    pub fn details_grid(&mut self, open: bool, summary: &str, charts: Vec<String>) {
        self.blocks.push(Block::DetailsGrid { open, summary: summary.to_owned(), charts });
    }

    /// Small charts side by side, each scrolled by itself where the page is narrow.
    pub fn scrolled_grid(&mut self, charts: impl IntoIterator<Item = String>) {
        self.blocks.push(Block::ScrolledGrid(charts.into_iter().collect()));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.to_owned()));
    }

    /// A list of remarks.
    pub fn list(&mut self, items: impl IntoIterator<Item = String>) {
        self.blocks.push(Block::List(items.into_iter().collect()));
    }

    /// A table that is shown on demand.
    pub fn details(&mut self, summary: &str, table: &Table) {
        self.details_tables(summary, std::slice::from_ref(table));
    }

    /// Tables that are shown on demand.
    pub fn details_tables(&mut self, summary: &str, tables: &[Table]) {
        let (summary, tables) = (summary.to_owned(), tables.to_vec());
        self.blocks.push(Block::Details { summary, tables });
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.blocks.push(Block::Table(table.clone()));
    }

    /// A chart over the page's whole width: an SVG element, and a caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        self.blocks.push(Block::Figure { svg: svg.to_owned(), caption: caption.to_owned() });
    }

    /// Small charts side by side: SVG elements.
    pub fn grid(&mut self, charts: impl IntoIterator<Item = String>) {
        self.blocks.push(Block::Grid(charts.into_iter().collect()));
    }

    /// The page as an HTML document that ends with `foot`.
    #[must_use]
    pub fn to_html(&self, foot: &str) -> String {
        let (title, lead, foot) = (escape(&self.title), escape(&self.lead), escape(foot));
        let body: String = self.blocks.iter().map(Block::to_html).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header><p class=\"brand\">Weir</p><h1>{title}</h1>\n\
             <p class=\"lead\">{lead}</p></header>\n{body}<footer>{foot}</footer>\n\
             </main>\n</body>\n</html>\n"
        )
    }

    /// The page as Markdown that ends with `foot`. Charts are left out.
    #[must_use]
    pub fn to_markdown(&self, foot: &str) -> String {
        let mut out = format!("# {}\n\n{}\n", plain(&self.title), plain(&self.lead));
        for text in self.blocks.iter().filter_map(Block::to_markdown) {
            let _ = write!(out, "\n{text}\n");
        }
        let _ = write!(out, "\n{foot}\n");
        out
    }
}

impl Block {
    fn to_html(&self) -> String {
        match self {
            Self::Outcome { class, word, sentence } => {
                let (word, sentence) = (escape(word), escape(sentence));
                format!(
                    "<p class=\"verdict {class}\"><strong>{word}</strong> <span>{sentence}</span></p>\n"
                )
            }
            Self::Facts(facts) => {
                let each = facts.iter().map(|fact| {
                    let (label, value) = (escape(&fact.label), escape(&fact.value));
                    format!("<div><dt>{label}</dt><dd>{value}</dd></div>")
                });
                format!("<dl class=\"facts\">{}</dl>\n", each.collect::<String>())
            }
            Self::Section(heading) => format!("<h2>{}</h2>\n", escape(heading)),
            Self::Chapter { id, heading } => {
                let (id, heading) = (escape(id), escape(heading));
                format!("<h2 id=\"{id}\" class=\"chapter\">{heading}</h2>\n")
            }
            Self::Subsection(heading) => format!("<h3>{}</h3>\n", escape(heading)),
            Self::Contents(entries) => {
                let each = entries.iter().map(|(id, heading)| {
                    format!("<li><a href=\"#{}\">{}</a></li>\n", escape(id), escape(heading))
                });
                let each: String = each.collect();
                format!("<nav class=\"contents\" aria-label=\"Contents\"><ol>\n{each}</ol></nav>\n")
            }
            Self::Alert { heading, sentences } => {
                let (heading, items) = (escape(heading), items(sentences, ""));
                format!(
                    "<aside class=\"alert\"><strong>{heading}</strong><ul>{items}</ul></aside>\n"
                )
            }
            Self::Code(text) => format!("<pre><code>{}</code></pre>\n", escape(text)),
            Self::Paragraph(text) => format!("<p>{}</p>\n", escape(text)),
            Self::List(list) => format!("<ul>\n{}</ul>\n", items(list, "\n")),
            Self::Table(table) => table.to_html(),
            Self::Details { summary, tables } => {
                let tables: String = tables.iter().map(Table::to_html).collect();
                format!("<details><summary>{}</summary>{tables}</details>\n", escape(summary))
            }
            Self::Figure { svg, caption } => format!(
                "<figure class=\"wide\"><div class=\"scroll\">{svg}</div><figcaption>{}</figcaption></figure>\n",
                escape(caption)
            ),
            Self::Grid(charts) => grid(charts, |svg| format!("<figure>{svg}</figure>\n")),
            Self::ScrolledGrid(charts) => scrolled(charts),
            Self::DetailsGrid { open, summary, charts } => {
                let (open, summary) = (if *open { " open" } else { "" }, escape(summary));
                let charts = scrolled(charts);
                format!("<details{open}><summary>{summary}</summary>\n{charts}</details>\n")
            }
        }
    }

    /// Nothing for a chart and for the table of contents.
    fn to_markdown(&self) -> Option<String> {
        let list = |items: &[String]| {
            let items = items.iter().map(|item| format!("- {}", plain(item)));
            items.collect::<Vec<_>>().join("\n")
        };
        Some(match self {
            Self::Outcome { word, sentence, .. } => {
                format!("**{}.** {}", plain(word), plain(sentence))
            }
            Self::Facts(facts) => {
                let facts = facts.iter().map(|fact| format!("{}: {}", fact.value, fact.label));
                list(&facts.collect::<Vec<_>>())
            }
            Self::Section(heading) | Self::Chapter { heading, .. } => {
                format!("## {}", plain(heading))
            }
            Self::Subsection(heading) => format!("### {}", plain(heading)),
            Self::Alert { heading, sentences } => {
                format!("**{}**\n\n{}", plain(heading), list(sentences))
            }
            Self::Code(text) => format!("```\n{text}\n```"),
            Self::Paragraph(text) => plain(text),
            Self::List(items) => list(items),
            Self::Table(table) => table.to_markdown(),
            Self::Details { summary, tables } => {
                let tables = tables.iter().map(|table| format!("\n\n{}", table.to_markdown()));
                format!("{}:{}", plain(summary), tables.collect::<String>())
            }
            Self::Contents(_)
            | Self::Figure { .. }
            | Self::Grid(_)
            | Self::ScrolledGrid(_)
            | Self::DetailsGrid { .. } => return None,
        })
    }
}

fn items(items: &[String], end: &str) -> String {
    items.iter().map(|item| format!("<li>{}</li>{end}", escape(item))).collect()
}

fn grid(charts: &[String], figure: impl FnMut(&String) -> String) -> String {
    format!("<div class=\"grid\">\n{}</div>\n", charts.iter().map(figure).collect::<String>())
}

fn scrolled(charts: &[String]) -> String {
    grid(charts, |svg| format!("<figure><div class=\"scroll\">{svg}</div></figure>\n"))
}

/// `text` with the characters escaped that mean something in Markdown, in one line.
pub(crate) fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => safe.push(' '),
            '|' | '<' | '*' | '`' | '\\' => safe.extend(['\\', character]),
            other if weir_core::text::commands(other) => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column};

    #[test]
    fn a_page_needs_nothing_from_outside_and_no_script() {
        let mut page = Page::new("Contracts & peers", "What was measured.");
        page.verdict(false, "auto, 1 TiB: +9 % over 10 s");
        page.facts(&[Fact { value: "1".into(), label: "case".into() }]);
        page.section("Throughput");
        page.figure("<svg></svg>", "One line.");
        let html = page.to_html("Weir 0.1.0");
        assert!(html.contains("<title>Contracts &amp; peers</title>"));
        assert!(html.contains("class=\"verdict miss\""));
        for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_page_as_markdown_has_everything_but_charts() {
        let mut page = Page::new("Contracts & peers", "Measured with <care>.");
        page.verdict(false, "auto|manual: +9 %");
        page.facts(&[Fact { value: "1".into(), label: "case".into() }]);
        page.section("Throughput");
        page.figure("<svg></svg>", "One line.");
        page.table(&Table {
            columns: vec![Column::words("case"), Column::figures("error")],
            rows: vec![
                vec!["a | b".into(), Cell::judged("+9 %", false)],
                vec!["*".into(), Cell::judged("0 %", true)],
            ],
        });
        page.list(["one".to_owned(), "two\nlines".to_owned()]);
        let due = "# Contracts & peers\n\nMeasured with \\<care>.\n\n\
                   **Miss.** auto\\|manual: +9 %\n\n- 1: case\n\n## Throughput\n\n\
                   | case | error |\n|---|--:|\n| a \\| b | **+9 %** |\n| \\* | 0 % |\n\n\
                   - one\n- two lines\n\nWeir 0.1.0\n";
        assert_eq!(page.to_markdown("Weir 0.1.0"), due);
    }
}
