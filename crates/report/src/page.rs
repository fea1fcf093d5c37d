//! One self-contained HTML file.

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

/// A page in the making.
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with a title and a paragraph under it.
    #[must_use]
    pub fn new(title: &str, lead: &str) -> Self {
        let safe = escape(title);
        let body = format!(
            "<header><p class=\"brand\">Weir</p><h1>{safe}</h1>\n<p class=\"lead\">{}</p></header>\n",
            escape(lead)
        );
        Self { title: safe, body }
    }

    /// The outcome in a sentence.
    pub fn verdict(&mut self, passed: bool, sentence: &str) {
        let (class, word) = if passed { ("pass", "Pass") } else { ("miss", "Miss") };
        self.outcome(class, word, sentence);
    }

    /// The outcome in a word and a sentence, where it is neither good nor bad.
    pub fn remark(&mut self, word: &str, sentence: &str) {
        self.outcome("neither", word, sentence);
    }

    /// A good or bad outcome in a word of the caller's.
    pub fn judgement(&mut self, good: bool, word: &str, sentence: &str) {
        self.outcome(if good { "pass" } else { "miss" }, word, sentence);
    }

    fn outcome(&mut self, class: &str, word: &str, sentence: &str) {
        let word = escape(word);
        let _ = writeln!(
            self.body,
            "<p class=\"verdict {class}\"><strong>{word}</strong> <span>{}</span></p>",
            escape(sentence)
        );
    }

    /// A row of figures that stand out.
    pub fn facts(&mut self, facts: &[Fact]) {
        self.body.push_str("<dl class=\"facts\">");
        for fact in facts {
            let (label, value) = (escape(&fact.label), escape(&fact.value));
            let _ = write!(self.body, "<div><dt>{label}</dt><dd>{value}</dd></div>");
        }
        self.body.push_str("</dl>\n");
    }

    /// Begins a section.
    pub fn section(&mut self, heading: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(heading));
    }

    /// Begins a section that [`Page::contents`] leads to.
    pub fn chapter(&mut self, id: &str, heading: &str) {
        let (id, heading) = (escape(id), escape(heading));
        let _ = writeln!(self.body, "<h2 id=\"{id}\" class=\"chapter\">{heading}</h2>");
    }

    /// Begins a part of a section.
    pub fn subsection(&mut self, heading: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", escape(heading));
    }

    /// The table of contents: ids of chapters and their headings.
    pub fn contents<'a>(&mut self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.body.push_str("<nav class=\"contents\" aria-label=\"Contents\"><ol>\n");
        for (id, heading) in entries {
            let (id, heading) = (escape(id), escape(heading));
            let _ = writeln!(self.body, "<li><a href=\"#{id}\">{heading}</a></li>");
        }
        self.body.push_str("</ol></nav>\n");
    }

    /// A warning to be read before the figures: a heading and sentences.
    pub fn alert(&mut self, heading: &str, sentences: impl IntoIterator<Item = String>) {
        let heading = escape(heading);
        let _ = write!(self.body, "<aside class=\"alert\"><strong>{heading}</strong><ul>");
        for sentence in sentences {
            let _ = write!(self.body, "<li>{}</li>", escape(&sentence));
        }
        self.body.push_str("</ul></aside>\n");
    }

    /// Text to copy, as it stands.
    pub fn code(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre><code>{}</code></pre>", escape(text));
    }

    /// Small charts side by side that can be folded away, and are shown from the start if `open`;
    /// always on paper.
    pub fn details_grid(&mut self, open: bool, summary: &str, charts: Vec<String>) {
        let open = if open { " open" } else { "" };
        let _ = writeln!(self.body, "<details{open}><summary>{}</summary>", escape(summary));
        self.scrolled_grid(charts);
        self.body.push_str("</details>\n");
    }

    /// Small charts side by side, each scrolled by itself where the page is narrow.
    pub fn scrolled_grid(&mut self, charts: impl IntoIterator<Item = String>) {
        self.body.push_str("<div class=\"grid\">\n");
        for svg in charts {
            let _ = writeln!(self.body, "<figure><div class=\"scroll\">{svg}</div></figure>");
        }
        self.body.push_str("</div>\n");
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// A list of remarks.
    pub fn list(&mut self, items: impl IntoIterator<Item = String>) {
        self.body.push_str("<ul>\n");
        for item in items {
            let _ = writeln!(self.body, "<li>{}</li>", escape(&item));
        }
        self.body.push_str("</ul>\n");
    }

    /// A table that is shown on demand.
    pub fn details(&mut self, summary: &str, table: &Table) {
        self.details_tables(summary, std::slice::from_ref(table));
    }

    /// Tables that are shown on demand.
    pub fn details_tables(&mut self, summary: &str, tables: &[Table]) {
        let (summary, tables) = (escape(summary), tables.iter().map(Table::to_html));
        let tables: String = tables.collect();
        let _ = writeln!(self.body, "<details><summary>{summary}</summary>{tables}</details>");
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.body.push_str(&table.to_html());
    }

    /// A chart over the page's whole width: an SVG element, and a caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        let _ = writeln!(
            self.body,
            "<figure class=\"wide\"><div class=\"scroll\">{svg}</div><figcaption>{}</figcaption></figure>",
            escape(caption)
        );
    }

    /// Small charts side by side: SVG elements.
    pub fn grid(&mut self, charts: impl IntoIterator<Item = String>) {
        self.body.push_str("<div class=\"grid\">\n");
        for svg in charts {
            let _ = writeln!(self.body, "<figure>{svg}</figure>");
        }
        self.body.push_str("</div>\n");
    }

    /// The whole document; `foot` stands at its end.
    #[must_use]
    pub fn finish(self, foot: &str) -> String {
        let Self { title, body } = self;
        let foot = escape(foot);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}<footer>{foot}</footer>\n\
             </main>\n</body>\n</html>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_nothing_from_outside_and_no_script() {
        let mut page = Page::new("Contracts & peers", "What was measured.");
        page.verdict(false, "auto, 1 TiB: +9 % over 10 s");
        page.facts(&[Fact { value: "1".into(), label: "case".into() }]);
        page.section("Throughput");
        page.figure("<svg></svg>", "One line.");
        let html = page.finish("Weir 0.1.0");
        assert!(html.contains("<title>Contracts &amp; peers</title>"));
        assert!(html.contains("class=\"verdict miss\""));
        for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
