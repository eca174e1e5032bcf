//! nginx, which serves a folder and counts what it sends.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use xtask::shell::renew;

use super::places::Places;

/// How long it may take to answer, and to write its log.
const PATIENCE: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_millis(200);

/// A server that ends when this value is dropped.
pub(super) struct Web {
    child: Child,
    pub(super) port: u16,
    log: PathBuf,
}

/// What a server sent.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) requests: u64,
    /// Bytes of answers, their headers included.
    pub(super) bytes: u64,
}

impl Web {
    /// Serves `SCRATCH/www`.
    pub(super) fn start(places: &Places) -> Result<Self> {
        renew(&places.path("SCRATCH/nginx"))?;
        fs::create_dir_all(places.path("SCRATCH/www"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let [own, root] = ["SCRATCH/nginx", "SCRATCH/www"].map(|word| places.resolve(word));
        let user = if geteuid().is_root() { "user root;" } else { "" };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|name| format!("{name}_temp_path {own}/{name};")).concat();
        let config = format!(
            "{user} daemon off; pid {own}/pid; error_log {own}/error; events {{}}
            http {{
                {temporary} log_format sent '$bytes_sent'; access_log {own}/log sent;
                server {{ listen 127.0.0.1:{port}; root {root}; }}
            }}"
        );
        let file = places.path("SCRATCH/nginx/config");
        fs::write(&file, config)?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-p").arg(&own).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start nginx")?;
        let web = Self { child, port, log: places.path("SCRATCH/nginx/log") };
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(since.elapsed() < PATIENCE, "nginx does not answer; see {own}/error");
            thread::sleep(MOMENT);
        }
        Ok(web)
    }

    /// Returns what was sent since the last call.
    pub(super) fn sent(&self) -> Result<Sent> {
        thread::sleep(MOMENT);
        let log = fs::read_to_string(&self.log).context("cannot read nginx's log")?;
        File::options().write(true).open(&self.log)?.set_len(0)?;
        let mut sent = Sent::default();
        for line in log.lines() {
            sent.requests += 1;
            sent.bytes += line.parse::<u64>().context("a line of nginx's log is no number")?;
        }
        Ok(sent)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // Its workers end with it.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}
