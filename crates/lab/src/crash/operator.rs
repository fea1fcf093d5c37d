//! An operator who changes the catalogue while the server is killed, and checks that acknowledged
//! changes are kept: a volume's quota, and whether another volume exists.

use super::world::{TICK, World};
use std::path::Path;
use weir_api::{Client, ClientError, Dry, NewVolume, VolumeChange};
use weir_core::rng::Rng;

const GIB: u64 = 1 << 30;

/// The volume whose quota is changed.
pub(super) const RESIZED: &str = "resized";
/// The volume that is made and removed.
const FLEETING: &str = "fleeting";

/// The possible content of the catalogue.
struct Facts {
    quota: Vec<u64>,
    exists: Vec<bool>,
}

/// Changes the catalogue of the server on `data` until the run is over; the number of acknowledged
/// changes.
pub(super) fn run(world: &World, data: &Path, pool: &str, quota_bytes: u64) -> u64 {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        world.found("operator".to_owned(), vec!["no runtime".to_owned()], Vec::new());
        return 0;
    };
    let client = Client::local(data);
    let mut facts = Facts { quota: vec![quota_bytes], exists: vec![false] };
    let (mut rng, mut changes) = (Rng::new(world.run ^ 0x0b0e), 0);
    while !world.stopped() {
        let cuts = world.cuts();
        let turn = async {
            // A reply after the power cut counts for nothing.
            let alive = || if world.cuts_begun() == cuts { Ok(()) } else { Err(Trouble::Away) };
            facts.compare(&client, alive).await?;
            facts.change(&client, pool, &mut rng, alive).await?;
            changes += 1;
            Ok(())
        };
        match runtime.block_on(turn) {
            Ok(()) | Err(Trouble::Away) => {}
            Err(Trouble::Wrong(_)) if cuts != world.cuts_begun() => {}
            Err(Trouble::Wrong(what)) => {
                world.found("operator".to_owned(), vec![what], Vec::new());
            }
        }
        std::thread::sleep(TICK * 5);
    }
    changes
}

/// Why a turn failed.
enum Trouble {
    /// The server was killed.
    Away,
    Wrong(String),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable { .. } | ClientError::Broken(_) | ClientError::Timeout(_) => {
                Self::Away
            }
            other => Self::Wrong(other.to_string()),
        }
    }
}

impl Facts {
    /// Compares the catalogue with the possible states, and keeps the one that is true.
    async fn compare(
        &mut self,
        client: &Client,
        alive: impl Fn() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let volumes = client.volumes().await?;
        alive()?;
        let resized = volumes.iter().find(|volume| volume.name == RESIZED);
        let quota = resized.map_or(0, |volume| volume.quota_bytes);
        let exists = volumes.iter().any(|volume| volume.name == FLEETING);
        if !self.quota.contains(&quota) || !self.exists.contains(&exists) {
            return Err(Trouble::Wrong(format!(
                "the catalogue says {quota} and {exists}, not {:?} and {:?}",
                self.quota, self.exists
            )));
        }
        (self.quota, self.exists) = (vec![quota], vec![exists]);
        Ok(())
    }

    /// Makes one change; until the reply, the state before it is possible too.
    async fn change(
        &mut self,
        client: &Client,
        pool: &str,
        rng: &mut Rng,
        alive: impl Fn() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        if rng.below(3) > 0 {
            let quota_bytes = (1 + rng.below(1000)) * GIB;
            self.quota.push(quota_bytes);
            let change = VolumeChange { quota_bytes: Some(quota_bytes), ..VolumeChange::default() };
            client.change_volume(RESIZED, &change, Dry::No).await?;
            alive()?;
            self.quota = vec![quota_bytes];
        } else if self.exists == [false] {
            self.exists.push(true);
            let new = NewVolume {
                name: FLEETING.to_owned(),
                pool: pool.to_owned(),
                quota_bytes: GIB,
                ..NewVolume::default()
            };
            client.create_volume(&new, Dry::No).await?;
            alive()?;
            self.exists = vec![true];
        } else {
            self.exists.push(false);
            client.delete_volume(FLEETING, Dry::No).await?;
            alive()?;
            self.exists = vec![false];
        }
        Ok(())
    }
}
