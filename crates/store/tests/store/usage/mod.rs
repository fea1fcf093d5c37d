//! The usage is exact: against a model to the unit, against what the kernel says, with concurrent
//! clients, through restarts clean and unclean, and while it is counted anew.
//!
//! `WEIR_USAGE_OPERATIONS` sets how many random operations there are on each file system (`make
//! usage`: ten million); `WEIR_USAGE_SEED` replays.

mod exact;
mod mend;
mod player;
mod record;
mod walk;
