//! The pool and the volume that are measured: made, recognised where a killed run left them, and
//! taken away. Nothing else is ever taken away: it goes by what was made or recognised here, and
//! only unchanged.

use super::Result;
use anyhow::{Context, anyhow, bail};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_api::{Client, ClientError, Dry, NewPool, NewVolume, Pool, Qos, Volume};

/// The pool that is measured. That it is there keeps other runs out.
pub(super) const NAME: &str = weir_catalog::CALIBRATION_POOL;
/// The pool's level: the quickest.
pub(super) const LEVEL: &str = "extreme";
/// Size of pool and volume. At the quickest level it buys 8 TiB/s, so that the contract binds
/// nowhere.
pub(super) const SIZE_BYTES: u64 = 1 << 56;
/// Hexadecimal digits by which the volumes of runs differ.
const DIGITS: usize = 16;
/// Longest wait for the removal of the volume's files.
const REMOVAL_WAIT: Duration = Duration::from_secs(120);
/// Time in which the remains of a killed run stay unchanged; a living run writes files or measures.
const QUIET_WAIT: Duration = Duration::from_secs(3);
/// The number of looks at that: requests of a killed run may still be worked on.
const QUIET_LOOKS: u32 = 4;

/// The pool, and the volume in it.
pub(super) struct Ground {
    pool: Pool,
    volume: Option<String>,
    /// Was the directory there before?
    keeps_directory: bool,
}

impl Ground {
    /// Makes the pool, and thinks of a name for the volume.
    pub(super) async fn make(client: &Client, new: &NewPool) -> Result<Self> {
        let mut random = [0; 8];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|error| anyhow!("cannot read the kernel's random source: {error}"))?;
        let random = u64::from_ne_bytes(random);
        // One with a mark was a pool's, which is no more.
        let keeps = |path: &Path| path.exists() && !path.join("weir-pool").exists();
        let keeps_directory = new.directory.as_deref().is_some_and(|path| keeps(Path::new(path)));
        let pool = client.overcommitting().create_pool(new, Dry::No).await?;
        let pool = pool.item.context("the server's response lacks the created pool")?;
        Ok(Self { pool, volume: Some(format!("{NAME}-{random:0DIGITS$x}")), keeps_directory })
    }

    /// Makes the volume, and gives its name.
    pub(super) async fn make_volume(&self, client: &Client) -> Result<&str> {
        let name = self.volume.as_deref().context("a volume without a name")?;
        let (pool, quota_bytes) = (NAME.to_owned(), SIZE_BYTES);
        let new = NewVolume { name: name.to_owned(), pool, quota_bytes, ..NewVolume::default() };
        client.overcommitting().create_volume(&new, Dry::No).await?;
        Ok(name)
    }

    /// The pool's directory.
    pub(super) fn directory(&self) -> &Path {
        Path::new(&self.pool.directory)
    }

    /// The remains of a killed run, if any.
    ///
    /// # Errors
    /// If what is there was not made by a calibration, or something is still done with it.
    pub(super) async fn left_behind(client: &Client) -> Result<Option<Self>> {
        let Some(mut seen) = look(client).await? else { return Ok(None) };
        for _ in 0..QUIET_LOOKS {
            if let Some(why) = is_foreign(&seen.0, &seen.1) {
                bail!(
                    "pool {NAME} already exists and was not created by a calibration: {why}. Delete it if it is not needed (`weir volume delete`, `weir pool delete {NAME}`), or move its volumes to another pool first (`weir volume move`)"
                );
            }
            tokio::time::sleep(QUIET_WAIT).await;
            let Some(now) = look(client).await? else { return Ok(None) };
            let waiting =
                |volume: &Volume| volume.live.as_ref().is_some_and(|live| live.waiting > 0);
            if now == seen && !now.1.iter().any(waiting) {
                let volume = now.1.first().map(|volume| volume.name.clone());
                return Ok(Some(Self { pool: now.0, volume, keeps_directory: false }));
            }
            seen = now;
        }
        bail!("another `weir calibrate` is running in pool {NAME}: wait until it is complete")
    }

    /// Takes the volume and the pool away, where they are there and still the same.
    pub(super) async fn remove(&self, client: &Client) -> Result<()> {
        if let Some(name) = &self.volume
            && let Some(volume) = absent(client.volume(name).await)?
        {
            if volume.pool != NAME {
                bail!("volume {name} was moved to pool {} and is not removed", volume.pool);
            }
            client.if_match(&volume.etag).delete_volume(name, Dry::No).await?;
            self.await_removal(volume.id).await;
        }
        let Some(pool) = absent(client.pool(NAME).await)? else { return Ok(()) };
        if pool.id != self.pool.id {
            bail!("pool {NAME} was replaced during the calibration and is not removed");
        }
        client.if_match(&pool.etag).delete_pool(NAME, Dry::No).await?;
        let directory = self.directory();
        // A directory made for the calibration is empty now; if it isn't, something in it is
        // somebody's.
        let made_here = !self.keeps_directory && directory.file_name().is_some_and(|it| it == NAME);
        if made_here && std::fs::remove_dir(directory).is_err() && directory.exists() {
            bail!("directory {} is not empty: remove it when it is", directory.display());
        }
        Ok(())
    }

    /// The files go in the background, under another name, and the pool's directory only goes
    /// without them.
    async fn await_removal(&self, id: u32) {
        let volumes = self.directory().join("volumes");
        // In the order of the renaming, so that it is never missed in between.
        let trees: [PathBuf; 2] =
            [id.to_string(), format!(".trash-{id}")].map(|it| volumes.join(it));
        let begun = Instant::now();
        while trees.iter().any(|tree| tree.exists()) && begun.elapsed() < REMOVAL_WAIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The pool of our name with its volumes.
async fn look(client: &Client) -> Result<Option<(Pool, Vec<Volume>)>> {
    let Some(pool) = absent(client.pool(NAME).await)? else { return Ok(None) };
    let mut volumes = client.volumes().await?;
    volumes.retain(|volume| volume.pool == NAME);
    Ok(Some((pool, volumes)))
}

/// Why a calibration can't have made this.
fn is_foreign(pool: &Pool, volumes: &[Volume]) -> Option<String> {
    if (pool.level.as_str(), pool.qos, pool.size_bytes) != (LEVEL, Qos::Auto, SIZE_BYTES) {
        return Some("its level, model or size differs".to_owned());
    }
    let is_own = |volume: &&Volume| {
        let digits = volume.name.strip_prefix(NAME).and_then(|rest| rest.strip_prefix('-'));
        let named = digits.is_some_and(|digits| {
            digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        named && volume.quota_bytes == SIZE_BYTES
    };
    if let Some(other) = volumes.iter().find(|volume| !is_own(volume)) {
        return Some(format!("it contains volume {}", other.name));
    }
    (volumes.len() > 1 || pool.volumes != volumes.len())
        .then(|| format!("it contains {} volumes", pool.volumes.max(volumes.len())))
}

/// Nothing where the server says that there is none.
fn absent<T>(asked: Result<T, ClientError>) -> Result<Option<T>> {
    match asked {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(anyhow!(error)),
    }
}
