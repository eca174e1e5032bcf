//! A bundle at an address, read by ranges (RFC 9110, section 14).

mod paced;
mod segment;

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustls::CertificateError;
use sealift_format::num::{self, wide};
use ureq::config::RedirectAuthHeaders;
use ureq::http::header::{CONTENT_RANGE, ETAG, IF_RANGE, LAST_MODIFIED, LOCATION, RANGE};
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::address::with_secrets;
use paced::Paced;
use segment::{SEGMENT, Segment, merged};

/// How long a server may send nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long one of several may that have the same file.
const SHORT_SILENCE: Duration = Duration::from_secs(10);
/// How long a whole request may take: bytes that came are kept.
const REQUEST: Duration = Duration::from_secs(300);
/// How often a request is sent that brings nothing.
const TRIES: u32 = 5;
/// How often to one of several servers that have the same file.
const FEW_TRIES: u32 = 2;
/// The wait before it is repeated, which doubles each time.
const PAUSE: Duration = Duration::from_millis(250);
/// The fewest bytes with which a request counts as one that brought something.
const PROGRESS: u64 = 64 << 10;
/// Bytes of the first request: head, and often layout and index.
const FIRST: u64 = 256 << 10;
/// Bytes of a request of what is not known to be wanted.
const BLOCK: u64 = 128 << 10;
/// The segments that are requested at once.
const AT_ONCE: usize = 4;
/// The segments that are kept.
const KEPT: usize = 12;
/// Redirects that are followed.
const REDIRECTS: u32 = 5;

/// How long a server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It is the only one that has the file.
    Long,
    /// Others have the file as well.
    Short,
}

impl Patience {
    fn silence(self) -> Duration {
        match self {
            Self::Long => SILENCE,
            Self::Short => SHORT_SILENCE,
        }
    }

    fn tries(self) -> u32 {
        match self {
            Self::Long => TRIES,
            Self::Short => FEW_TRIES,
        }
    }
}

/// A file at an address.
#[derive(Debug)]
pub(super) struct Http {
    own: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    agent: Agent,
    address: String,
    patience: Patience,
    len: u64,
    validator: Validator,
    state: Mutex<State>,
    arrived: Condvar,
}

/// What tells whether the file is still the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Validator {
    etag: Option<String>,
    modified: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    /// Ranges that will be read, in ascending order.
    wanted: Vec<Segment>,
    /// Ranges that were read or are on their way, the oldest first.
    segments: Vec<(Segment, Arrival)>,
    /// How many ranges were requested.
    requested: u64,
}

#[derive(Clone, Debug)]
enum Arrival {
    OnItsWay,
    There(Arc<Vec<u8>>),
    Failed(io::ErrorKind, String),
}

/// What is at an address.
pub(super) enum Found {
    /// A file that is read at any offset.
    Ranges(Http),
    /// A file that the server sends only as a whole.
    Whole(Box<dyn Read + Send>),
}

/// The first answer.
enum Begun {
    Found(Found),
    Redirected(Box<Response<Body>>),
}

impl Http {
    /// Asks for the beginning of the file.
    pub(super) fn open(address: &str, patience: Patience) -> io::Result<Found> {
        let agent = agent()?;
        let mut address = with_secrets(address);
        let (mut pause, mut tries, mut redirects) = (PAUSE, 0, 0);
        loop {
            match Self::begin(agent, &address, patience) {
                Ok(Begun::Found(found)) => return Ok(found),
                Ok(Begun::Redirected(response)) => {
                    redirects += 1;
                    address = redirected(&address, &response, redirects)?;
                }
                Err(error) => {
                    tries += 1;
                    if tries >= patience.tries() || !may_repeat(&error) {
                        return Err(error);
                    }
                    std::thread::sleep(pause);
                    pause *= 2;
                }
            }
        }
    }

    fn begin(agent: &Agent, address: &str, patience: Patience) -> io::Result<Begun> {
        let response = get(agent, address, Segment { start: 0, end: FIRST }, &Validator::default(), patience)?;
        match response.status() {
            status if status.is_redirection() => Ok(Begun::Redirected(Box::new(response))),
            StatusCode::OK => {
                Ok(Begun::Found(Found::Whole(Box::new(Paced::new(response.into_body().into_reader(), patience)))))
            }
            StatusCode::PARTIAL_CONTENT => {
                let (start, end, len) = content_range(response.headers())?;
                if start != 0 || end != FIRST.min(len) {
                    return Err(lie("it sent other bytes than those that were asked for"));
                }
                let validator = Validator::of(response.headers());
                let mut bytes = Vec::new();
                read_body(response.into_body(), end, &mut bytes, patience)?;
                let segments = vec![(Segment { start, end }, Arrival::There(Arc::new(bytes)))];
                let own = Shared {
                    agent: agent.clone(),
                    address: address.to_owned(),
                    patience,
                    len,
                    validator,
                    state: Mutex::new(State { segments, requested: 1, ..State::default() }),
                    arrived: Condvar::new(),
                };
                Ok(Begun::Found(Found::Ranges(Self { own: Arc::new(own) })))
            }
            // An empty file has no range.
            StatusCode::RANGE_NOT_SATISFIABLE => Ok(Begun::Found(Found::Whole(Box::new(io::empty())))),
            other => Err(status_error(other)),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.own.len
    }

    /// Says which ranges will be read: they are requested before they are asked for, several at once.
    pub(super) fn expect(&self, ranges: impl Iterator<Item = Range<u64>>) {
        let mut ranges: Vec<_> =
            ranges.map(|Range { start, end }| Segment { start, end: end.min(self.own.len) }).collect();
        ranges.retain(|range| range.start < range.end);
        ranges.sort_unstable_by_key(|range| range.start);
        self.own.state.lock().wanted = merged(ranges);
    }

    /// Returns how many requests it takes to read what is expected, with those that were sent already, if none has to be repeated.
    pub(super) fn requests(&self) -> u64 {
        let state = self.own.state.lock();
        let is_there = |wanted: &&Segment| {
            state.segments.iter().any(|(there, _)| there.start <= wanted.start && wanted.end <= there.end)
        };
        state.requested + wide(state.wanted.iter().filter(|wanted| !is_there(wanted)).count())
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let own = &self.own;
        if buffer.is_empty() || offset >= own.len {
            return Ok(0);
        }
        let mut state = own.state.lock();
        loop {
            let place = state.segments.iter().position(|(segment, _)| segment.contains(offset));
            match place.and_then(|place| state.segments.get(place)).cloned() {
                Some((segment, Arrival::There(bytes))) => {
                    own.request_next(&mut state, offset);
                    drop(state);
                    let from = bytes.get(num::size(offset - segment.start)..).unwrap_or_default();
                    let len = from.len().min(buffer.len());
                    buffer[..len].copy_from_slice(&from[..len]);
                    return Ok(len);
                }
                Some((_, Arrival::OnItsWay)) => own.arrived.wait(&mut state),
                Some((segment, Arrival::Failed(kind, why))) => {
                    // The next read tries again.
                    state.segments.retain(|(other, _)| *other != segment);
                    return Err(io::Error::new(kind, why));
                }
                None => {
                    let segment = own.segment_for(&state, offset, wide(buffer.len()));
                    own.request_next(&mut state, offset);
                    if !state.segments.iter().any(|(other, _)| other.contains(offset)) {
                        own.request(&mut state, segment);
                    }
                }
            }
        }
    }
}

impl Shared {
    /// Returns what to request for a read: a wanted range, or a block.
    fn segment_for(&self, state: &State, offset: u64, len: u64) -> Segment {
        let wanted = state.wanted.iter().find(|segment| segment.contains(offset));
        wanted.copied().unwrap_or_else(|| {
            let end = offset.saturating_add(len.clamp(BLOCK, SEGMENT)).min(self.len);
            Segment { start: offset, end }
        })
    }

    /// Requests the next wanted ranges, as many at once as there may be.
    fn request_next(self: &Arc<Self>, state: &mut State, offset: u64) {
        let from = state.wanted.partition_point(|segment| segment.end <= offset);
        let next: Vec<Segment> = state.wanted.iter().skip(from).take(AT_ONCE).copied().collect();
        if next.first().is_none_or(|first| !first.contains(offset)) {
            return;
        }
        for mut segment in next {
            // The first request often has the first of what is wanted.
            while let Some((other, _)) = state.segments.iter().find(|(other, _)| other.contains(segment.start)) {
                segment.start = other.end;
            }
            if segment.start < segment.end {
                self.request(state, segment);
            }
        }
    }

    /// Requests a range on a thread of its own.
    fn request(self: &Arc<Self>, state: &mut State, segment: Segment) {
        while state.segments.len() >= KEPT {
            let Some(oldest) = state.segments.iter().position(|(_, arrival)| !matches!(arrival, Arrival::OnItsWay))
            else {
                break;
            };
            state.segments.remove(oldest);
        }
        state.segments.push((segment, Arrival::OnItsWay));
        state.requested += 1;
        let own = Arc::clone(self);
        let run = move || {
            let arrival = match own.fetch(segment) {
                Ok(bytes) => Arrival::There(Arc::new(bytes)),
                Err(error) => Arrival::Failed(error.kind(), error.to_string()),
            };
            own.arrive(segment, arrival);
        };
        if let Err(error) = std::thread::Builder::new().name("fetch".into()).spawn(run) {
            let failed = Arrival::Failed(error.kind(), error.to_string());
            if let Some((_, arrival)) = state.segments.iter_mut().find(|(other, _)| *other == segment) {
                *arrival = failed;
            }
        }
    }

    fn arrive(&self, segment: Segment, arrival: Arrival) {
        let mut state = self.state.lock();
        if let Some((_, own)) = state.segments.iter_mut().find(|(other, _)| *other == segment) {
            *own = arrival;
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Gets a range, and goes on where a connection was cut.
    fn fetch(&self, segment: Segment) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(num::size(segment.len()));
        let (mut pause, mut tries) = (PAUSE, 0);
        loop {
            let before = wide(bytes.len());
            let rest = Segment { start: segment.start + before, end: segment.end };
            let Err(error) = self.fetch_into(rest, &mut bytes) else { return Ok(bytes) };
            if wide(bytes.len()) - before >= PROGRESS {
                (pause, tries) = (PAUSE, 0);
            }
            tries += 1;
            if tries >= self.patience.tries() || !may_repeat(&error) {
                return Err(error);
            }
            tracing::info!(start = rest.start, have = bytes.len(), %error, "asks for the rest of a range again");
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    /// Appends a range, or what comes of it.
    fn fetch_into(&self, segment: Segment, bytes: &mut Vec<u8>) -> io::Result<()> {
        let response = get(&self.agent, &self.address, segment, &self.validator, self.patience)?;
        let status = response.status();
        let now = Validator::of(response.headers());
        if status != StatusCode::PARTIAL_CONTENT {
            let is_whole = status == StatusCode::OK && now == self.validator;
            return Err(match status {
                _ if is_whole => lie("it stopped sending ranges"),
                StatusCode::OK | StatusCode::RANGE_NOT_SATISFIABLE => changed(),
                other => status_error(other),
            });
        }
        if !self.validator.is_as(&now) {
            return Err(changed());
        }
        let (start, end, len) = content_range(response.headers())?;
        if len != self.len {
            return Err(changed());
        }
        if (start, end) != (segment.start, segment.end) {
            return Err(lie("it sent other bytes than those that were asked for"));
        }
        read_body(response.into_body(), segment.len(), bytes, self.patience)
    }
}

impl Validator {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        // A weak one says nothing about bytes.
        Self { etag: text(ETAG).filter(|tag| !tag.starts_with("W/")), modified: text(LAST_MODIFIED) }
    }

    /// Returns whether a later response is of the same file, as far as both say.
    fn is_as(&self, later: &Self) -> bool {
        let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        agree(&self.etag, &later.etag) && agree(&self.modified, &later.modified)
    }
}

/// Sends a request, without following redirects.
fn get(
    agent: &Agent,
    address: &str,
    range: Segment,
    validator: &Validator,
    patience: Patience,
) -> io::Result<Response<Body>> {
    let mut request = agent.get(address);
    request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end.saturating_sub(1)));
    if let Some(etag) = &validator.etag {
        request = request.header(IF_RANGE, etag);
    }
    // The first answer may be the whole file, which takes as long as it takes.
    let limit = (*validator != Validator::default()).then_some(REQUEST);
    let silence = Some(patience.silence());
    let config = request.config().timeout_global(limit).timeout_connect(silence);
    config.timeout_recv_response(silence).timeout_per_read(silence).build().call().map_err(without_address)
}

/// Returns the error as one of input and output, without the address, which may have secrets.
fn without_address(error: ureq::Error) -> io::Error {
    match error {
        ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(error) => tls_error(error),
            None => io::Error::new(error.kind(), error.kind().to_string()),
        },
        ureq::Error::Timeout(_) => io::Error::new(io::ErrorKind::TimedOut, "the server sent nothing for too long"),
        ureq::Error::HostNotFound => io::Error::new(io::ErrorKind::HostUnreachable, "no such host"),
        ureq::Error::ConnectionFailed => {
            io::Error::new(io::ErrorKind::ConnectionRefused, "no connection to the server")
        }
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => io::Error::new(io::ErrorKind::InvalidInput, "not an address"),
        ureq::Error::Rustls(error) => tls_error(&error),
        _ => io::Error::new(io::ErrorKind::InvalidData, "the server's answer is not HTTP"),
    }
}

fn tls_error(error: &rustls::Error) -> io::Error {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "the server's certificate is not by an authority that this machine knows; SSL_CERT_FILE can name a file with the authority's certificate".to_owned()
        }
        other => other.to_string(),
    };
    io::Error::new(io::ErrorKind::PermissionDenied, format!("TLS: {why}"))
}

fn lie(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server's answer is wrong: {what}"))
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file on the server changed meanwhile: repeat the command")
}

fn status_error(status: StatusCode) -> io::Error {
    let kind = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => io::ErrorKind::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => io::ErrorKind::PermissionDenied,
        _ if is_transient(status) => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, format!("the server answered {status}"))
}

/// Returns whether the server may answer otherwise soon.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

fn may_repeat(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    !matches!(error.kind(), InvalidData | InvalidInput | NotFound | PermissionDenied | HostUnreachable)
}

/// Returns start, end and length of the whole, of `bytes START-LAST/LENGTH`.
fn content_range(headers: &HeaderMap) -> io::Result<(u64, u64, u64)> {
    let parse = || {
        let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
        let (range, len) = text.split_once('/')?;
        let (start, last) = range.split_once('-')?;
        let (start, last, len) = (start.parse().ok()?, last.parse::<u64>().ok()?, len.parse().ok()?);
        (start <= last && last < len).then(|| (start, last + 1, len))
    };
    parse().ok_or_else(|| lie("Content-Range is missing or malformed"))
}

/// Returns where a redirect leads, if it is the same host by the same scheme.
fn redirected(address: &str, response: &Response<Body>, redirects: u32) -> io::Result<String> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::PermissionDenied, format!("the server redirects {what}"));
    if redirects > REDIRECTS {
        return Err(refused("again and again"));
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(|| lie("a redirect without a place"))?;
    let origin_of = |text: &str| {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        Some((scheme.to_ascii_lowercase(), authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()))
    };
    let own = origin_of(address).ok_or_else(|| lie("an address without a host"))?;
    if location.starts_with('/') && !location.starts_with("//") {
        let end = address.find("://").map_or(0, |at| at + 3);
        let end = address[end..].find(['/', '?', '#']).map_or(address.len(), |at| end + at);
        return Ok(format!("{}{location}", &address[..end]));
    }
    match origin_of(location) {
        Some(other) if other == own => Ok(location.to_owned()),
        Some((scheme, _)) if scheme != own.0 => Err(refused(&format!("to {scheme}: give that address if you want it"))),
        Some((_, host)) => Err(refused(&format!("to another host, {host}: give its address if you want it"))),
        None => Err(refused("to a place that is not an address")),
    }
}

/// Appends so many bytes of an answer, or those that come.
fn read_body(body: Body, len: u64, bytes: &mut Vec<u8>, patience: Patience) -> io::Result<()> {
    let is_all = body.content_length() == Some(len);
    let mut body = Paced::new(body.into_reader(), patience);
    match body.by_ref().take(len).read_to_end(bytes) {
        Ok(came) if wide(came) == len => {
            // A connection whose answer was read to its end is used for the next request; an answer without a length may not end.
            if is_all {
                let _ = body.read(&mut [0]);
            }
            Ok(())
        }
        // Not the end of the file, as UnexpectedEof would say.
        Ok(_) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was cut")),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(error),
        Err(_) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was cut")),
    }
}

/// Returns the client of this process, which keeps connections open between requests.
fn agent() -> io::Result<&'static Agent> {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    if let Some(agent) = AGENT.get() {
        return Ok(agent);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().root_certs(roots()?).unversioned_rustls_crypto_provider(provider).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .redirect_auth_headers(RedirectAuthHeaders::Never)
        .max_idle_connections_per_host(AT_ONCE)
        .user_agent("sealift")
        .build();
    Ok(AGENT.get_or_init(|| Agent::new_with_config(config)))
}

/// Returns the certificates of authorities that this machine trusts: those of `SSL_CERT_FILE`, or of its distribution.
fn roots() -> io::Result<RootCerts> {
    const FILES: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let given = std::env::var_os("SSL_CERT_FILE").map(std::path::PathBuf::from);
    let pem = match &given {
        Some(file) => std::fs::read(file).map_err(|error| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the file of SSL_CERT_FILE, {}: {error}", file.display()),
            )
        })?,
        // Without any, http still works, and https says that the issuer is unknown.
        None => FILES.iter().find_map(|file| std::fs::read(file).ok()).unwrap_or_default(),
    };
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    Ok(RootCerts::new_with_certs(&certificates))
}
