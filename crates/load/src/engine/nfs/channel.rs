//! A connection of the load as NFS: calls with numbers, and the replies to them.

use super::calls::Encoder;
use super::inbox::RpcRecords;
use super::reply;
use super::verifiers::{News, Verifier, Verifiers};
use crate::engine::job::{Op, Request};
use crate::engine::net::{Channel, Data, Fault, Outbox, Outcome, Record, Slot, Work};
use crate::verify::Ledger;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_nfs::rpc::FrameError;
use weir_nfs::xdr::XdrError;

/// Bits of an xid that number the slot; the others count.
const SLOT_BITS: u32 = 12;

/// The protocol of one connection.
pub(super) struct NfsChannel {
    encoder: Encoder,
    sequence: u32,
    whole_bytes: Option<usize>,
    shown: Shown,
}

/// The write verifiers that the server shows on this connection.
pub(super) struct Shown {
    pub(super) all: Arc<Verifiers>,
    pub(super) address: SocketAddr,
    /// The load writes unstably: a restart of the server may lose its writes.
    pub(super) unstable: bool,
    /// The last one, and the number of changes at all addresses then, so that the others need not
    /// be asked for each reply.
    pub(super) last: Option<(Verifier, usize)>,
}

impl NfsChannel {
    /// Numbers follow `sequence`. The data of reads is wanted if records are gathered whole, which
    /// are at most `whole_bytes` long.
    pub(super) const fn new(
        encoder: Encoder,
        sequence: u32,
        whole_bytes: Option<usize>,
        shown: Shown,
    ) -> Self {
        Self { encoder, sequence, whole_bytes, shown }
    }
}

impl Shown {
    /// Looks at the verifier of a reply to `request`; `outcome` becomes a failure if the reply is
    /// that of a COMMIT that does not cover the writes before it, or a late one to a write that the
    /// server may have lost since.
    #[inline]
    fn look(
        &mut self,
        verifier: Verifier,
        request: &Request,
        ledger: Option<&Ledger>,
        outcome: &mut Outcome,
    ) {
        let last = Some((verifier, self.all.count()));
        if self.last == last {
            return;
        }
        let news = self.all.see(self.address, verifier);
        if news != News::Old {
            self.last = last;
        }
        if news == News::Changed
            && let Some(ledger) = ledger
        {
            ledger.expose();
        }
        let failure = match request {
            Request::Commit { .. } if news != News::Same => {
                "COMMIT with another write verifier than the writes before it"
            }
            // The ledger exposed the writes that were answered before the verifier changed, and
            // this write was not answered yet.
            Request::Write { .. } if news == News::Old && self.unstable => {
                "WRITE answered late, with the write verifier from before a restart"
            }
            _ => return,
        };
        *outcome = Outcome::Failed(failure.to_owned());
    }
}

impl From<XdrError> for Fault {
    fn from(error: XdrError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl Channel for NfsChannel {
    type Records = RpcRecords;

    fn whole_bytes(&self) -> Option<usize> {
        self.whole_bytes
    }

    #[inline]
    fn send(
        &mut self,
        out: &mut Outbox,
        (slot, job): (usize, u32),
        op: &Op,
    ) -> Result<Option<u32>, Fault> {
        self.sequence = self.sequence.wrapping_add(1);
        let xid = (self.sequence << SLOT_BITS) | u32::try_from(slot).unwrap_or(0);
        self.encoder.encode(out, xid, (slot, job), &op.request);
        Ok(Some(xid))
    }

    #[inline]
    fn answer(
        &mut self,
        record: Record<'_>,
        slots: &[Slot],
        look: &mut impl FnMut(usize, &Work, Data<'_>),
        mut each: impl FnMut(usize, Outcome),
    ) -> Result<(), Fault> {
        let xid = reply::xid(record.head).unwrap_or(0);
        let (slot, work) = answered(slots, xid)?;
        let request = &work.op.request;
        let stability = self.encoder.plan.workload.stability;
        let reply = (record.head as &[u8], record.bytes);
        let (mut outcome, verifier) = reply::outcome(reply, request, stability)?;
        if let Some(verifier) = verifier {
            let ledger = self.encoder.plan.common.ledger.as_deref();
            self.shown.look(verifier, request, ledger, &mut outcome);
        }
        if matches!(request, Request::Create { .. })
            && work.op.fills()
            && let Some(handle) = reply::created(record.head)?
        {
            self.encoder.made.insert(slot, handle);
        }
        if self.whole_bytes.is_some()
            && let Some(data) = reply::read_data(record.head, request)?
        {
            look(slot, work, data);
        }
        each(slot, outcome);
        Ok(())
    }
}

/// The request that a reply with this xid answers, and its slot.
#[inline]
fn answered(slots: &[Slot], xid: u32) -> Result<(usize, &Work), Fault> {
    let index = usize::try_from(xid & ((1 << SLOT_BITS) - 1)).unwrap_or(usize::MAX);
    match slots.get(index) {
        Some(Slot { request: Some(sent), .. }) if sent.mark == xid => Ok((index, &sent.work)),
        _ => Err(Fault::Protocol(format!("a reply without a request (xid {xid:#010x})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reply_to_an_unstable_write_from_before_a_restart_is_a_failure() {
        let all = Arc::new(Verifiers::default());
        let connection = |unstable| Shown {
            all: Arc::clone(&all),
            address: SocketAddr::from(([127, 0, 0, 1], 2049)),
            unstable,
            last: None,
        };
        let write = Request::Write { file: 0, offset: 0, bytes: 4096, generation: 0 };
        let look = |shown: &mut Shown, verifier| {
            let mut outcome = Outcome::Done(4096);
            shown.look([verifier; 8], &write, None, &mut outcome);
            matches!(outcome, Outcome::Done(_))
        };
        let [mut one, mut other, mut stable] = [true, true, false].map(connection);
        for shown in [&mut one, &mut other, &mut stable] {
            assert!(look(shown, 1));
        }
        assert!(look(&mut one, 2), "the server has restarted, and answered this write since");
        assert!(!look(&mut other, 1), "the reply waited on another connection");
        assert!(!look(&mut other, 1), "and so did one more");
        assert!(look(&mut stable, 1), "a stable write survives a restart");
        assert!(look(&mut other, 2));
    }
}
