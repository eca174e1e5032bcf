//! Serves the page that checks a bundle in a browser, which the program includes (feature `portal`).

mod answer;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::Error;

/// Wait after a connection could not be accepted, as with too many open files: a retry may succeed.
const PAUSE: Duration = Duration::from_millis(100);

/// A server of the page. It serves the page's own files and nothing else, and receives nothing: a bundle's content stays in the browser.
#[derive(Debug)]
pub struct Portal {
    listener: TcpListener,
    address: SocketAddr,
}

impl Portal {
    /// Binds to an address; port 0 means any free port. From now on connections wait for [`Portal::serve`].
    ///
    /// # Errors
    /// Returns an error if the address is in use, is not one of this machine, or needs more privileges.
    pub fn listen(address: SocketAddr) -> Result<Self, Error> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|error: io::Error| Error::io("listen on", address.to_string(), error))
    }

    /// Returns the bound address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// Returns an error if the system refuses to wait for connections.
    pub fn serve(self) -> Result<Infallible, Error> {
        let refused = |error| Error::io("listen on", self.address.to_string(), error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        runtime.block_on(accept(self.listener)).map_err(refused)
    }
}

async fn accept(listener: TcpListener) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(async move {
                    let service = service_fn(|request| async move { Ok::<_, Infallible>(answer::to(&request)) });
                    // The timer ends connections that never complete their request.
                    let connection =
                        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                    if let Err(error) = connection.await {
                        tracing::debug!(%peer, %error, "a connection ended early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
