//! A slow line to a server: what the server sends comes later, and only so many bytes in a second, however many connections there are.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// From a request to the first byte of its answer, and to open a connection.
pub(super) const DELAY: Duration = Duration::from_millis(50);
/// Bytes in a second: 20 Mbit/s.
pub(super) const RATE: f64 = 20e6 / 8.0;
/// Bytes that are sent at once.
const PART: usize = 8 << 10;
/// Parts that can be on their way, which are far more than fit into the delay.
const ON_THE_WAY: usize = 256;
/// How far the line may catch up when a thread was woken late.
const LATE: Duration = Duration::from_millis(20);

/// When the line is free again.
type Free = Arc<Mutex<Instant>>;
/// A part, and when it arrives.
type Arriving = (Instant, Vec<u8>);

/// Listens until the process ends, and passes each connection to the server at `port`. Returns the port at which it listens.
pub(super) fn to(port: u16) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?.port();
    let free = Arc::new(Mutex::new(Instant::now()));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let free = Arc::clone(&free);
            // A connection that fails is one that was closed, which its program notices.
            thread::spawn(move || carry(&client, port, &free));
        }
    });
    Ok(own)
}

fn carry(client: &TcpStream, port: u16, free: &Free) -> io::Result<()> {
    thread::sleep(DELAY);
    let server = TcpStream::connect(("127.0.0.1", port))?;
    for stream in [client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut requests, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut requests, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let (sender, receiver) = sync_channel(ON_THE_WAY);
    let mut to_client = client.try_clone()?;
    let arriving = thread::spawn(move || {
        let _ = arrive(&receiver, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let sent = send(&server, &sender, free);
    drop(sender);
    let _ = arriving.join();
    let _ = server.shutdown(Shutdown::Both);
    sent
}

/// Takes what the server sends, no faster than the line is.
fn send(mut server: &TcpStream, sender: &SyncSender<Arriving>, free: &Free) -> io::Result<()> {
    let mut buffer = vec![0; PART];
    loop {
        let len = server.read(&mut buffer)?;
        let Some(part) = buffer.get(..len).filter(|part| !part.is_empty()) else { return Ok(()) };
        let sent = reserve(free, len);
        thread::sleep(sent.saturating_duration_since(Instant::now()));
        if sender.send((sent + DELAY, part.to_vec())).is_err() {
            return Ok(());
        }
    }
}

/// Returns when so many bytes have left, behind those of the other connections.
fn reserve(free: &Free, len: usize) -> Instant {
    let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let start = now.checked_sub(LATE).map_or(now, |earliest| earliest.max(*free));
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    *free = start + Duration::from_secs_f64(f64::from(len) / RATE);
    *free
}

fn arrive(receiver: &Receiver<Arriving>, client: &mut TcpStream) -> io::Result<()> {
    for (when, part) in receiver {
        thread::sleep(when.saturating_duration_since(Instant::now()));
        client.write_all(&part)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two connections at once share the line, and the first byte is as late as the delay.
    #[test]
    fn bytes_take_their_time() {
        const LEN: usize = 250_000;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has a port").port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || stream.write_all(&vec![7; LEN]));
            }
        });
        let line = to(port).expect("a port is free");
        let since = Instant::now();
        let takes = [0, 1].map(|_| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let mut stream = TcpStream::connect(("127.0.0.1", line)).expect("the line listens");
                stream.read_to_end(&mut bytes).expect("it is read");
                bytes
            })
        });
        for take in takes {
            assert_eq!(take.join().expect("it does not panic"), vec![7; LEN]);
        }
        let seconds = since.elapsed().as_secs_f64();
        // Twice 0.1 s for the bytes, less how far the line may catch up, and twice the delay.
        assert!(seconds > 0.27, "{seconds}");
        assert!(seconds < 3.0, "{seconds}");
    }
}
