//! Servers: nginx, and one that lies.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealift_desk::Desk;

/// nginx, which serves a folder until it is dropped.
pub(crate) struct Nginx {
    child: Child,
    port: u16,
    log: std::path::PathBuf,
}

impl Nginx {
    pub(crate) fn of(desk: &Desk) -> Self {
        Self::with(desk, "")
    }

    /// Serves by https, with the certificate and the key in these files of the folder.
    pub(crate) fn by_https(desk: &Desk, certificate: &str, key: &str) -> Self {
        let [certificate, key] = [certificate, key].map(|file| desk.path(file).display().to_string());
        Self::with(desk, &format!("ssl_certificate {certificate}; ssl_certificate_key {key};"))
    }

    fn with(desk: &Desk, tls: &str) -> Self {
        let ssl = if tls.is_empty() { "" } else { "ssl" };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = desk.path("");
        let root = root.display();
        let user = if sealift_desk::is_root() { "user root;" } else { "" };
        desk.write(
            "nginx.conf",
            format!(
                "{user} daemon off; pid {root}/nginx.pid; error_log {root}/nginx.error;
                events {{}}
                http {{
                    client_body_temp_path {root}/nginx.1; proxy_temp_path {root}/nginx.2; fastcgi_temp_path {root}/nginx.3;
                    uwsgi_temp_path {root}/nginx.4; scgi_temp_path {root}/nginx.5;
                    log_format own '$request_method $uri $status $body_bytes_sent $args $connection'; access_log {root}/nginx.log own;
                    server {{
                        listen 127.0.0.1:{port} {ssl}; root {root}; {tls}
                        location /whole/ {{ alias {root}/channel/; max_ranges 0; }}
                    }}
                }}"
            ),
        );
        let mut nginx = Command::new("nginx");
        nginx.args(["-c".as_ref(), desk.path("nginx.conf").as_os_str(), "-p".as_ref(), desk.path("").as_os_str()]);
        let child = nginx.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sealift_desk::wait("nginx listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port, log: desk.path("nginx.log") }
    }

    /// Returns the address of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Returns over how many connections requests came since the last call of [`Self::sent`].
    pub(crate) fn connections(&self) -> usize {
        let log = std::fs::read_to_string(&self.log).unwrap();
        log.lines().filter_map(|line| line.rsplit(' ').next()).collect::<HashSet<_>>().len()
    }

    /// Returns the number of requests of this path and the bytes that were sent, since the last call.
    pub(crate) fn sent(&self, path: &str) -> (usize, u64) {
        let log = std::fs::read_to_string(&self.log).unwrap();
        std::fs::File::options().write(true).open(&self.log).unwrap().set_len(0).unwrap();
        let lines = log.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[1] == path).then(|| words[3].parse::<u64>().unwrap())
        });
        lines.fold((0, 0), |(requests, bytes), sent| (requests + 1, bytes + sent))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-QUIT", &pid]).status();
        let _ = self.child.wait();
    }
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Other bytes than those that were asked for.
    OtherRange,
    /// A malformed Content-Range.
    NoRange,
    /// Another length from the second answer on.
    OtherLength,
    /// Another ETag from the second answer on.
    Changed,
    /// All of the file from the second answer on.
    Whole,
    /// Every connection is cut after this many bytes.
    Cut(usize),
    /// It sends one byte less than it says from the second answer on, and ends.
    Short,
    /// Each first answer to a range is that the server is busy.
    Busy,
    /// A redirect to another host.
    OtherHost,
    /// A redirect to https.
    OtherScheme,
    /// A redirect to itself.
    Around,
    /// A redirect to a place that has the file.
    Moved,
    /// The last byte of the file is another.
    OtherBytes,
    /// It has no ranges, and sends a byte now and then.
    Trickle,
    /// It answers nothing from the second request on.
    Silent,
}

/// Serves bytes at any path, until the process ends. Returns the address.
pub(crate) fn lying(bytes: Vec<u8>, lie: Lie) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (bytes, answers) = (Arc::new(bytes), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (bytes, answers) = (Arc::clone(&bytes), Arc::clone(&answers));
            std::thread::spawn(move || answer(stream, &bytes, lie, &answers));
        }
    });
    format!("http://127.0.0.1:{port}/os.sealift")
}

/// Answers the requests of a connection.
fn answer(stream: TcpStream, bytes: &[u8], lie: Lie, answers: &AtomicUsize) -> Option<()> {
    let port = stream.local_addr().ok()?.port();
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let mut stream = stream;
    loop {
        let request: Vec<String> = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let path = request.first()?.split(' ').nth(1)?.to_owned();
        let range =
            request.iter().find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
        let (start, last) = range.as_deref()?.split_once('-')?;
        let (start, end) = (start.parse::<usize>().ok()?, bytes.len().min(last.parse::<usize>().ok()? + 1));
        let number = answers.fetch_add(1, Ordering::SeqCst);
        let is_first = number == 0;
        let place = match lie {
            Lie::OtherHost => Some("http://localhost:9/os.sealift".to_owned()),
            Lie::OtherScheme => Some(format!("https://127.0.0.1:{port}/os.sealift")),
            Lie::Around => Some("/os.sealift".to_owned()),
            Lie::Moved if path == "/os.sealift" => Some("/moved".to_owned()),
            _ => None,
        };
        if let Some(place) = place {
            write!(stream, "HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        }
        if lie == Lie::Busy && number.is_multiple_of(2) {
            write!(stream, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").ok()?;
            continue;
        }
        if lie == Lie::Trickle {
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len()).ok()?;
            for byte in bytes {
                stream.write_all(&[*byte]).ok()?;
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            continue;
        }
        if lie == Lie::Silent && !is_first {
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        let etag = if lie == Lie::Changed && !is_first { "\"new\"" } else { "\"old\"" };
        if lie == Lie::Whole && !is_first {
            write!(stream, "HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {}\r\n\r\n", bytes.len()).ok()?;
            stream.write_all(bytes).ok()?;
            continue;
        }
        let total = bytes.len() + usize::from(lie == Lie::OtherLength && !is_first);
        let (from, to) = match lie {
            Lie::OtherRange if !is_first => (start + 1, end),
            _ => (start, end),
        };
        let stated = if lie == Lie::NoRange { "bytes".to_owned() } else { format!("bytes {from}-{}/{total}", to - 1) };
        let head = "HTTP/1.1 206 Partial Content\r\nETag: ";
        write!(stream, "{head}{etag}\r\nContent-Range: {stated}\r\nContent-Length: {}\r\n\r\n", to - from).ok()?;
        let mut body = bytes[from..to].to_vec();
        if lie == Lie::OtherBytes && to == bytes.len() {
            *body.last_mut()? ^= 1;
        }
        if let Lie::Cut(most) = lie {
            body.truncate(most);
        }
        if lie == Lie::Short && !is_first {
            body.pop();
        }
        stream.write_all(&body).ok()?;
        if body.len() < to - from {
            return None;
        }
    }
}
