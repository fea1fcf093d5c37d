//! The books that the tables of all volumes share: the use of each client and owner with its
//! bounds, the opens, the grants that are not settled, and the grace period.

use crate::accounts::Accounts;
use crate::ask::GrantId;
use crate::file::File;
use crate::grace::Grace;
use crate::limits::Limits;
use crate::open::Opens;
use crate::owner::Owner;
use crate::presence::Watch;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) accounts: Accounts,
    pub(crate) opens: Opens,
    pub(crate) watch: Option<Box<dyn Watch>>,
    /// Grants of which it is not known yet what became of them.
    pub(crate) granted: BTreeMap<GrantId, (File, Owner)>,
    pub(crate) grace: Grace,
    pub(crate) limits: Limits,
    next_number: u64,
}

impl Books {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            accounts: Accounts::default(),
            opens: Opens::default(),
            watch: None,
            granted: BTreeMap::new(),
            grace: Grace::default(),
            limits,
            next_number: 0,
        }
    }

    /// A number for a waiter or an open, unlike that of any other on any volume.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}
