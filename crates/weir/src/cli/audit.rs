//! `weir audit`: the log of changes and refused requests.

use super::{Global, Output, connect, print, values};
use anyhow::Result;
use clap::Args;
use std::time::Duration;
use weir_api::{AuditEvent, AuditQuery, AuditRecord};
use weir_report::terminal::json_line;

/// Polling interval of `--follow`.
const FOLLOW_WAIT: Duration = Duration::from_secs(1);

/// Show the audit log: changes, refused requests, and logins over SMB
///
/// The log records every change with the caller (token or user of the socket) and the request. It
/// also records refused changes, requests without permission (at most 30 per minute), backups, and
/// logins, refused logins (at most 30 per minute) and logoffs over SMB.
/// In a cluster, each gateway has the log of what it was asked.
/// The command requires the admin role. Without options it shows the latest 100 records.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir audit --since 24h
  weir audit --since 2026-11-01T00:00:00Z --output json > november.jsonl
  weir audit --follow")]
pub(crate) struct AuditArgs {
    /// Show only records since this age, such as 24h or 30d, or since a time such as
    /// 2026-11-01T00:00:00Z
    #[arg(long, value_name = "WHEN", value_parser = values::beginning)]
    since: Option<String>,
    /// Continue to show new records until interrupted
    #[arg(long)]
    follow: bool,
}

/// Prints the selected records, one line each (also as JSON).
pub(crate) async fn run(global: &Global, args: &AuditArgs) -> Result<()> {
    let client = connect::client(global)?;
    let mut query = AuditQuery { since: args.since.clone(), ..AuditQuery::default() };
    loop {
        let page = client.audit(&query).await?;
        for record in &page.items {
            match global.output {
                Output::Json => json_line(record)?,
                Output::Table => print::line(line(record))?,
            }
        }
        query.after = Some(page.next);
        match (page.more, args.follow) {
            (true, _) => {}
            (false, true) => tokio::time::sleep(FOLLOW_WAIT).await,
            (false, false) => return Ok(()),
        }
    }
}

fn line(record: &AuditRecord) -> String {
    let who = record.who.as_deref().unwrap_or("somebody");
    let uid = record.uid.map(|uid| format!("uid {uid}"));
    let place = record.from.clone().or(uid).map(|place| format!(" ({place})")).unwrap_or_default();
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    let what = match record.event {
        AuditEvent::Gap => said(&record.note),
        AuditEvent::Login | AuditEvent::LoginRefused | AuditEvent::Logoff => {
            format!("{who}{place} {}", said(&record.note)).trim_end().to_owned()
        }
        _ => format!("{who}{place} {} {}", said(&record.method), said(&record.path)),
    };
    let mut line = format!("{} {:<7} {what}", record.time, record.event);
    if let Some(request) = &record.request {
        line += &format!(" {request}");
    }
    if let Some(code) = &record.code {
        line += &format!(": {code}");
    }
    if let Some(count) = record.suppressed {
        let what = match record.event {
            AuditEvent::Login | AuditEvent::Logoff => "logins or logoffs",
            AuditEvent::LoginRefused => "refused logins",
            _ => "refused requests",
        };
        line += &format!(" (and {count} earlier {what})");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::Role;

    #[test]
    fn a_record_is_one_line() {
        let record = AuditRecord {
            version: 1,
            time: "2026-11-22T10:00:00.000Z".into(),
            event: AuditEvent::Refused,
            who: Some("ci".into()),
            role: Some(Role::Operator),
            uid: None,
            from: Some("192.0.2.7:50000".into()),
            method: Some("POST".into()),
            path: Some("/v1/pools".into()),
            route: Some("/v1/pools".into()),
            request: Some(serde_json::json!({ "name": "p" })),
            status: Some(409),
            code: Some("name_taken".into()),
            generation: 7,
            suppressed: None,
            note: None,
        };
        let login = AuditRecord {
            event: AuditEvent::LoginRefused,
            method: None,
            path: None,
            request: None,
            code: Some("wrong_password".into()),
            suppressed: Some(7),
            ..record.clone()
        };
        assert_eq!(
            line(&login),
            "2026-11-22T10:00:00.000Z login-refused ci (192.0.2.7:50000): wrong_password (and 7 earlier refused logins)"
        );
        assert_eq!(
            line(&record),
            "2026-11-22T10:00:00.000Z refused ci (192.0.2.7:50000) POST /v1/pools {\"name\":\"p\"}: name_taken"
        );
    }
}
