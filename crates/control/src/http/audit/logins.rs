//! The records of logins. They are no changes, so they are not synced, and a login is not refused
//! because it cannot be recorded.

use super::super::ControlState;
use super::{Audit, record};
use crate::logins::{LeftOut, Login, LoginEvent, Told};
use crate::sync::watch;
use std::time::Duration;
use tokio::time::interval;
use weir_api::{AuditEvent, AuditRecord};

/// Time between looks for logins that were left out and that no later record tells of.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Records the logins that the data plane tells of, until the server stops.
pub(in super::super) async fn record_logins(
    state: ControlState,
    mut stopping: watch::Receiver<bool>,
) {
    let logins = state.0.plane.logins();
    let audit = &state.0.audit;
    let mut look = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            told = logins.next() => audit.record_login(told).await,
            _ = look.tick() => audit.record_left_out(logins.overdue()).await,
            _ = stopping.changed() => break,
        }
    }
    while let Some(told) = logins.try_next() {
        audit.record_login(told).await;
    }
    audit.record_left_out(logins.left_out()).await;
}

impl Audit {
    async fn record_login(&self, Told { login, suppressed }: Told) {
        let Login { account, client, event } = login;
        let (event, code, note) = match event {
            LoginEvent::LoggedIn { session, renewed: false } => {
                (AuditEvent::Login, None, Some(format!("SMB session {session}")))
            }
            LoginEvent::LoggedIn { session, renewed: true } => {
                (AuditEvent::Login, None, Some(format!("SMB session {session}, renewed")))
            }
            LoginEvent::Refused { reason } => (AuditEvent::LoginRefused, Some(reason), None),
            LoginEvent::LoggedOff { session } => {
                (AuditEvent::Logoff, None, Some(format!("SMB session {session}")))
            }
        };
        let record = |made: AuditRecord| AuditRecord {
            who: account,
            from: Some(client.to_string()),
            code: code.map(str::to_owned),
            note,
            suppressed,
            ..made
        };
        self.record_event(event, record).await;
    }

    async fn record_left_out(&self, LeftOut { refused, others }: LeftOut) {
        for (event, count) in [(AuditEvent::LoginRefused, refused), (AuditEvent::Login, others)] {
            if count.is_some() {
                let note = Some("not recorded one by one, because they came too fast".to_owned());
                let filled = |made| AuditRecord { suppressed: count, note, ..made };
                self.record_event(event, filled).await;
            }
        }
    }

    /// Writes a record of the present generation: in its turn, so that it does not hide that a
    /// change before it has no record.
    async fn record_event(&self, event: AuditEvent, fill: impl FnOnce(AuditRecord) -> AuditRecord) {
        let _turn = self.turn.lock().await;
        let made = record(event, None, self.catalog.snapshot().generation);
        self.append(fill(made), false).await;
    }
}
