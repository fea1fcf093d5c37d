//! Requests about gateways, addresses and homes of volumes.

use super::{Client, Dry, NOTHING, Pages, Result};
use crate::routes;
use crate::{Address, Changed, Gateway, HomeChange, NewAddress, VolumeHome};
use hyper::Method;

impl Client {
    /// All gateways of the cluster.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError), as for every request.
    pub async fn gateways(&self) -> Result<Vec<Gateway>> {
        Pages::new(self, routes::GATEWAYS).all().await
    }

    /// Moves all addresses away from a gateway, and gives it no new ones. Returns before they have
    /// moved.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn drain_gateway(&self, name: &str) -> Result<Gateway> {
        let path = routes::path(routes::GATEWAY_DRAIN, name);
        self.send(Method::PUT, &path, NOTHING, Dry::No).await
    }

    /// Lets a gateway that was drained have addresses again.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn undrain_gateway(&self, name: &str) -> Result<Gateway> {
        let path = routes::path(routes::GATEWAY_DRAIN, name);
        self.send(Method::DELETE, &path, NOTHING, Dry::No).await
    }

    /// Says that no process of a gateway runs, for example because its machine is off. Its
    /// addresses are taken over without asking it.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn declare_gateway_gone(&self, name: &str) -> Result<Gateway> {
        let path = routes::path(routes::GATEWAY_GONE, name);
        self.send(Method::PUT, &path, NOTHING, Dry::No).await
    }

    /// Removes a gateway that has ended from the cluster. Returns the gateway before its removal.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn remove_gateway(&self, name: &str) -> Result<Gateway> {
        let path = routes::path(routes::GATEWAY, name);
        self.send(Method::DELETE, &path, NOTHING, Dry::No).await
    }

    /// All addresses of the cluster.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn addresses(&self) -> Result<Vec<Address>> {
        Pages::new(self, routes::ADDRESSES).all().await
    }

    /// Adds an address to the cluster.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn add_address(&self, new: &NewAddress, dry: Dry) -> Result<Changed<Address>> {
        self.make(routes::ADDRESSES, new, dry).await
    }

    /// Removes an address that no volume has.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn remove_address(&self, address: &str, dry: Dry) -> Result<Changed<Address>> {
        let path = routes::path(routes::ADDRESS, address);
        self.send(Method::DELETE, &path, NOTHING, dry).await
    }

    /// The gateway that serves a volume.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn volume_home(&self, volume: &str) -> Result<VolumeHome> {
        self.get(&routes::path(routes::VOLUME_HOME, volume)).await
    }

    /// Moves a volume, and all others of its address, to another gateway. Returns before they have
    /// moved.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn move_home(&self, volume: &str, gateway: &str) -> Result<VolumeHome> {
        let path = routes::path(routes::VOLUME_HOME, volume);
        let change = HomeChange { gateway: gateway.to_owned() };
        self.send(Method::PUT, &path, Some(&change), Dry::No).await
    }
}
