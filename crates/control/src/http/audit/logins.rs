//! The audit records of SMB logins. They are not synced, because they record no change of the
//! catalogue, and a login is not refused because its record cannot be written.

use super::super::ControlState;
use super::{Audit, record};
use crate::logins::{LeftOut, Login, LoginEvent, LoginToRecord};
use crate::sync::watch;
use std::time::Duration;
use tokio::time::interval;
use weir_api::{AuditEvent, AuditRecord};

/// Interval at which logins that were left out are recorded as a count.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Records the logins that the data plane reports, until the server stops.
pub(in super::super) async fn record_logins(
    state: ControlState,
    mut stopping: watch::Receiver<bool>,
) {
    let logins = state.0.plane.logins();
    let audit = &state.0.audit;
    let mut look = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            login = logins.next() => audit.record_login(login).await,
            _ = look.tick() => audit.record_left_out(logins.overdue()).await,
            _ = stopping.changed() => break,
        }
    }
    while let Some(login) = logins.try_next() {
        audit.record_login(login).await;
    }
    audit.record_left_out(logins.left_out()).await;
}

impl Audit {
    async fn record_login(&self, queued: LoginToRecord) {
        let LoginToRecord { login, suppressed } = queued;
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
                let note = Some("not recorded one by one, because there were too many".to_owned());
                let filled = |made| AuditRecord { suppressed: count, note, ..made };
                self.record_event(event, filled).await;
            }
        }
    }

    /// Writes a record of the current generation, in its turn: so it does not hide a missing record
    /// of an earlier change.
    async fn record_event(&self, event: AuditEvent, fill: impl FnOnce(AuditRecord) -> AuditRecord) {
        let _turn = self.turn.lock().await;
        let made = record(event, None, self.catalog.snapshot().generation);
        self.append(fill(made), false).await;
    }
}
