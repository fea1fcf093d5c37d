//! Faults of the simulated world, and how it is healed. Which ones happen, and when, is drawn from
//! the seed.

use super::etcd::Request;
use super::machine::Helper;
use super::world::{Misbehaviour, Programs, SECOND, What, World};
use crate::command::Command;
use crate::event::Event;
use crate::id::{GroupId, Life};

/// A fault. Durations are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// A process is killed, and started again after a while.
    Kill { machine: usize, after: u64 },
    /// A gateway is stopped in order: it replies no more, releases its lease, exits, and is started
    /// again after a while. An operator may have had it drained before.
    End { machine: usize, after: u64 },
    /// A machine loses power, and comes back after a while.
    Power { machine: usize, after: u64 },
    /// A machine loses power for good.
    Lose { machine: usize },
    /// The helper of a machine ends, and another begins, which knows nothing.
    Helper { machine: usize },
    /// A process is stopped, and continued after a while.
    Stop { machine: usize, after: u64 },
    /// A machine is cut from etcd.
    NoEtcd { machine: usize, after: u64 },
    /// A machine is cut from Ceph.
    NoCeph { machine: usize, after: u64 },
    /// Two machines are cut from each other.
    NoLink { a: usize, b: usize, after: u64 },
    /// A machine is cut from everything.
    Alone { machine: usize, after: u64 },
    /// All of etcd is stopped.
    EtcdDown { after: u64 },
    /// Requests to etcd take up to four seconds.
    EtcdSlow { after: u64 },
    /// etcd gets a new leader.
    Election,
    /// An operator gives a command to a gateway.
    Command { machine: usize, command: Command },
}

impl World {
    pub(super) fn strike(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Kill { machine, after } => {
                self.end_process(machine);
                self.after(after, What::Start { machine });
            }
            Fault::End { machine, after } => self.end_in_order(machine, after),
            Fault::Power { machine, after } => {
                self.power_off(machine);
                self.after(after, What::PowerOn { machine });
            }
            Fault::Lose { machine } => {
                self.power_off(machine);
                self.machines[machine].is_lost = true;
            }
            Fault::Helper { machine } => self.machines[machine].helper = Helper::default(),
            Fault::Stop { machine, after } => self.stop(machine, after),
            Fault::NoEtcd { machine, after } => {
                self.machines[machine].cut_from_etcd_until = now + after;
            }
            Fault::NoCeph { machine, after } => {
                self.machines[machine].cut_from_ceph_until = now + after;
            }
            Fault::NoLink { a, b, after } => {
                self.links_cut_until.insert((a.min(b), a.max(b)), now + after);
            }
            Fault::Alone { machine, after } => {
                self.machines[machine].cut_from_etcd_until = now + after;
                self.machines[machine].cut_from_ceph_until = now + after;
                for other in (0..self.machines.len()).filter(|other| *other != machine) {
                    let link = (machine.min(other), machine.max(other));
                    self.links_cut_until.insert(link, now + after);
                }
            }
            Fault::EtcdDown { after } => self.etcd.down_until = now + after,
            Fault::EtcdSlow { after } => self.etcd.slow_until = now + after,
            Fault::Election => self.etcd.elect(now),
            Fault::Command { machine, command } => {
                let event = Event::Command { number: 0, command };
                self.after(0, What::Arrive { to: machine, event });
            }
        }
    }

    /// Ends the life on a machine, if it goes on. The driver exits when etcd has answered, or after
    /// two seconds; the request about the lease may arrive later still.
    fn end_in_order(&mut self, machine: usize, after: u64) {
        let Some(process) = self.machines[machine].process.take_if(|own| !own.is_stopped()) else {
            return;
        };
        let life = process.cluster.life();
        self.machines[machine].leaving = Some(life);
        self.ask_etcd(machine, process.serial, 0, Request::Release(life));
        let exits = self.between(1, 2_000);
        self.after(exits, What::Exit { machine, life });
        self.after(exits + after, What::Start { machine });
    }

    pub(super) fn exit(&mut self, machine: usize, life: Life) {
        let own = &mut self.machines[machine];
        if own.leaving == Some(life) {
            own.leaving = None;
            own.helper.learn_end(life);
            self.after(0, What::HelperSpeaks { machine });
        }
    }

    fn power_off(&mut self, machine: usize) {
        let own = &mut self.machines[machine];
        own.process = None;
        own.leaving = None;
        own.helper = Helper::default();
        own.is_up = false;
    }

    fn stop(&mut self, machine: usize, after: u64) {
        let (now, hasty) = (self.now, self.misbehaviour == Misbehaviour::HastyHelper);
        let Some(process) = &mut self.machines[machine].process else { return };
        process.stopped.get_or_insert_with(|| (0, Vec::new())).0 = now + after;
        let serial = process.serial;
        self.after(after, What::Continue { machine, serial });
        if hasty {
            self.machines[machine].helper.take_for_ended();
            self.after(0, What::HelperSpeaks { machine });
        }
    }

    /// Continues a stopped process: it finds what has come meanwhile.
    pub(super) fn continue_process(&mut self, machine: usize, serial: u64) {
        let now = self.now;
        let process = self.machines[machine].process.as_mut().filter(|own| own.serial == serial);
        let Some(process) = process else { return };
        let Some((_, missed)) = process.stopped.take_if(|(until, _)| now >= *until) else { return };
        for event in missed {
            self.after(0, What::Event { machine, serial, event });
        }
    }

    /// Ends all faults but lost machines, and starts what does not run, with programs that can.
    pub(super) fn heal(&mut self) {
        let now = self.now;
        self.programs = Programs::Fitting;
        self.links_cut_until.clear();
        self.etcd.down_until = self.etcd.down_until.min(now);
        self.etcd.slow_until = self.etcd.slow_until.min(now);
        self.weather = super::world::Weather::CALM;
        for machine in 0..self.machines.len() {
            let own = &mut self.machines[machine];
            own.cut_from_etcd_until = own.cut_from_etcd_until.min(now);
            own.cut_from_ceph_until = own.cut_from_ceph_until.min(now);
            if let Some(process) = &mut own.process
                && let Some((until, _)) = &mut process.stopped
            {
                *until = now;
                let serial = process.serial;
                self.after(0, What::Continue { machine, serial });
            }
            self.after(0, What::PowerOn { machine });
        }
    }

    /// Draws faults for the time between two others.
    pub(super) fn draw_faults(&mut self, count: u64, from: u64, to: u64) {
        let machines = self.machines.len();
        let lost_most = if machines == 2 { 1 } else { (machines - 1) / 2 };
        let mut lost = 0;
        for _ in 0..count {
            let at = from + self.rng.below(to - from);
            let mut fault = self.draw_fault();
            if let Fault::Lose { machine } = fault {
                if lost == lost_most {
                    fault = Fault::Power { machine, after: SECOND };
                } else {
                    lost += 1;
                }
            }
            self.after(at - self.now, What::Fault(fault));
        }
    }

    fn draw_fault(&mut self) -> Fault {
        let machine = self.draw_machine();
        let after = self.between(200, 9_000);
        match self.rng.below(28) {
            0..4 => Fault::Kill { machine, after: after / 2 },
            4..6 => Fault::Power { machine, after: after + SECOND },
            6 => Fault::Lose { machine },
            7..10 => Fault::Stop { machine, after },
            10..13 => Fault::NoEtcd { machine, after },
            13 => Fault::NoCeph { machine, after },
            14..16 => Fault::NoLink { a: machine, b: self.draw_machine(), after },
            16 => Fault::Alone { machine, after },
            17..19 => Fault::EtcdDown { after },
            19 => Fault::EtcdSlow { after },
            20 => Fault::Election,
            21 => Fault::Helper { machine },
            22..25 => Fault::End { machine, after: after / 2 },
            _ => Fault::Command { machine, command: self.draw_command() },
        }
    }

    fn draw_machine(&mut self) -> usize {
        let machines = u64::try_from(self.machines.len()).unwrap();
        usize::try_from(self.rng.below(machines)).unwrap()
    }

    fn draw_command(&mut self) -> Command {
        let other = self.draw_machine();
        let gateway = self.machines[other].gateway;
        let groups = u64::try_from(self.etcd.view.records.groups.len()).unwrap();
        let group = GroupId(u32::try_from(1 + self.rng.below(groups.max(1))).unwrap());
        match self.rng.below(12) {
            0..4 => Command::Move { group, to: gateway },
            4 | 5 => Command::Drain { gateway, draining: true },
            6 => Command::Drain { gateway, draining: false },
            7 | 8 => Command::Remove { gateway },
            // Their numbers are not given again.
            9 => Command::Withdraw { group },
            _ => Command::Place { group: GroupId(100 + u32::from(gateway.0)), weight: 3 },
        }
    }
}
