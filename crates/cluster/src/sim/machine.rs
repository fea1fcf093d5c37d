//! A machine of the simulated world: its clock, the process of its gateway, and the helper beside
//! it.

use crate::cluster::Cluster;
use crate::event::{Asked, Event, HelperWord};
use crate::id::{GatewayId, Life, MachineId, SessionId, Version};
use alloc::collections::BTreeMap;
use weir_core::Mono;

/// One machine. Times are those of the world, in nanoseconds, if nothing else is said.
pub(super) struct Machine {
    pub(super) gateway: GatewayId,
    pub(super) id: MachineId,
    pub(super) is_up: bool,
    /// It does not come back.
    pub(super) is_lost: bool,
    /// The process of its gateway has ended its life, and exits soon. The next one waits for that.
    pub(super) leaving: Option<Life>,
    /// The rate of its clock above real time, in millionths.
    rate: i64,
    offset: u64,
    /// The program that is installed there knows versions up to this one.
    pub(super) speaks: Version,
    /// The number of the latest life, in the local state.
    pub(super) counter: u32,
    pub(super) helper: Helper,
    pub(super) process: Option<Process>,
    pub(super) cut_from_etcd_until: u64,
    pub(super) cut_from_ceph_until: u64,
}

/// The process of a gateway.
pub(super) struct Process {
    /// A number that no other process in the world has.
    pub(super) serial: u64,
    pub(super) cluster: Cluster,
    pub(super) sessions: Vec<SessionId>,
    /// The end of its being stopped, if it is, and the events that have come meanwhile.
    pub(super) stopped: Option<(u64, Vec<Event>)>,
    /// The revision of the newest view that was sent to it, and when that arrives.
    pub(super) watched: (u64, u64),
}

/// The helper of a machine.
#[derive(Default)]
pub(super) struct Helper {
    /// The latest life that was announced.
    announced: Option<u32>,
    runs: bool,
    notes: BTreeMap<GatewayId, u32>,
}

impl Machine {
    pub(super) fn new(number: u16, rate: i64, offset: u64) -> Self {
        Self {
            gateway: GatewayId(number),
            id: MachineId(u64::from(number)),
            is_up: true,
            is_lost: false,
            leaving: None,
            rate,
            offset,
            speaks: Version::CURRENT,
            counter: 0,
            helper: Helper::default(),
            process: None,
            cut_from_etcd_until: 0,
            cut_from_ceph_until: 0,
        }
    }

    /// The time on its clock.
    pub(super) fn local(&self, now: u64) -> Mono {
        Mono(self.offset + clock(self.rate, now))
    }

    pub(super) fn life(&self) -> Option<Life> {
        self.process.as_ref().map(|process| process.cluster.life())
    }

    /// The word of its helper: the answer to a question, or by itself.
    pub(super) fn word(&self, asker: Option<(Life, Mono)>) -> Option<HelperWord> {
        self.helper.word(self.gateway, self.id, asker)
    }

    /// The process ends, and the helper learns of it.
    pub(super) fn end_process(&mut self) {
        if let Some(process) = self.process.take() {
            self.helper.learn_end(process.cluster.life());
        }
    }
}

/// The reading of a clock whose rate is so many millionths above real time.
pub(super) fn clock(rate: i64, now: u64) -> u64 {
    let shown = i128::from(now) * i128::from(1_000_000 + rate) / 1_000_000;
    u64::try_from(shown).unwrap()
}

impl Process {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }
}

impl Helper {
    pub(super) fn announce(&mut self, life: Life) {
        self.announced = Some(life.number);
        self.runs = true;
    }

    /// The process of `life` has ended.
    pub(super) fn learn_end(&mut self, life: Life) {
        if self.announced == Some(life.number) {
            self.runs = false;
        }
    }

    pub(super) fn note(&mut self, life: Life) {
        self.notes.insert(life.gateway, life.number);
    }

    pub(super) fn unnote(&mut self, life: Life) {
        if self.notes.get(&life.gateway) == Some(&life.number) {
            self.notes.remove(&life.gateway);
        }
    }

    pub(super) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// It takes the process for ended, whether it is or not.
    pub(super) fn take_for_ended(&mut self) {
        self.runs = false;
    }

    /// It knows the gateway's latest life, and that it runs no more.
    pub(super) fn knows_end(&self) -> bool {
        self.announced.is_some() && !self.runs
    }

    fn word(
        &self,
        gateway: GatewayId,
        machine: MachineId,
        asker: Option<(Life, Mono)>,
    ) -> Option<HelperWord> {
        let answers = asker.map(|(by, at)| Asked {
            by,
            at,
            noted: self.notes.get(&by.gateway).is_some_and(|number| *number >= by.number),
        });
        Some(HelperWord {
            // It outlives programs, and speaks as the oldest does.
            version: Version(1),
            machine,
            life: Life { gateway, number: self.announced? },
            runs: self.runs,
            answers,
        })
    }
}
