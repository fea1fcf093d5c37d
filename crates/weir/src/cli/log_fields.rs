//! The values in lines of the log, which may come from outside: one event is one line, and nothing
//! in it commands a terminal, in each format. Where the lines go is [`super::logging`]'s.

use std::fmt::{self, Debug};
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer, debug_fn};
use tracing_subscriber::registry::LookupSpan;
use weir_core::text::{Escaped, escaped_json};

/// Fields as text, `name=value`, with values escaped. tracing-subscriber's own writes values that
/// are logged by their `Display` as they are.
pub(super) fn escaped() -> impl for<'writer> FormatFields<'writer> + 'static {
    use tracing_subscriber::field::MakeExt as _;
    debug_fn(field).delimited(" ")
}

fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = Escaped(format_args!("{value:?}"));
    match (field.name(), writer.has_ansi_escapes()) {
        ("message", _) => write!(writer, "{value}"),
        (name, false) => write!(writer, "{name}={value}"),
        (name, true) => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
    }
}

/// Events as JSON, as `F` writes them, with what serde_json leaves as it is escaped too.
pub(super) struct EscapedJson<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for EscapedJson<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writer.write_str(&escaped_json(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};
    use weir_core::text::commands;

    const EVIL: &str = "x\u{1b}[31m\nFAKE\r\u{202e}\u{9b}\u{7f}\u{2028}\u{200b}";

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// An event with text from outside in every way in which it can be logged.
    fn log() {
        let span = tracing::info_span!("work", volume = EVIL, place = %EVIL);
        let _inside = span.enter();
        let error = io::Error::other(EVIL);
        tracing::warn!(%error, directory = %EVIL, name = EVIL, seen = ?EVIL, "of {EVIL}");
    }

    #[test]
    fn a_line_of_text_is_one_line_that_commands_nothing() {
        for ansi in [false, true] {
            let written = Written::default();
            let to = written.clone();
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(ansi)
                .fmt_fields(escaped())
                .with_writer(move || to.clone())
                .finish();
            tracing::subscriber::with_default(subscriber, log);
            let text = written.text();
            let layout = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[33m"];
            let values = layout.iter().fold(text.clone(), |text, code| text.replace(code, ""));
            assert_eq!((text.lines().count(), text.ends_with('\n')), (1, true), "{text:?}");
            assert!(!values.trim_end().contains(commands), "{values:?}");
            assert_eq!(values.matches("FAKE").count(), 7, "{values}");
            assert!(values.contains("directory=x\\u{1b}[31m\\nFAKE"), "{values}");
        }
    }

    #[test]
    fn a_line_of_json_is_one_line_and_has_the_values_as_they_were() {
        let written = Written::default();
        let to = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .map_event_format(EscapedJson)
            .with_writer(move || to.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = written.text();
        assert_eq!((text.lines().count(), text.ends_with('\n')), (1, true), "{text:?}");
        assert!(!text.trim_end().contains(commands), "{text:?}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["fields"]["directory"], EVIL);
        assert_eq!(line["fields"]["name"], EVIL);
    }
}
