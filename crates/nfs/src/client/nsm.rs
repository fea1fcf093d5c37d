//! The calls of NSM version 1 (XNFS chapter 11).

use super::call::RemoteCall;
use crate::nsm::wire::{MonArgs, MonId, MyId, NotifyArgs, Procedure, StatArgs, StatRes, StateRes};
use crate::{PROGRAM_NSM, nsm};

macro_rules! procedures {
    ($($args:ty => $procedure:ident, $results:ty;)*) => {
        $(
            impl RemoteCall for $args {
                const PROGRAM: u32 = PROGRAM_NSM;
                const VERSION: u32 = nsm::VERSION;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

procedures! {
    StatArgs<'_> => Stat, StatRes;
    MonArgs<'_> => Mon, StatRes;
    MonId<'_> => Unmon, StateRes;
    MyId<'_> => UnmonAll, StateRes;
    NotifyArgs<'_> => Notify, ();
}
