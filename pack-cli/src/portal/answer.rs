//! Answers to HTTP requests.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

/// A file of the page.
struct File {
    /// The path from the root of the server.
    path: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every response. The page contains its own content security policy, so that it applies on any server; only a header can forbid frames.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'none'")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Another version of the program may serve another page.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// Answers a request, ignoring its body.
pub(super) fn to<T>(request: &Request<T>) -> Response<Full<Bytes>> {
    let mut headers = HeaderMap::from_iter(HEADERS);
    let (status, media_type, content) = if ![Method::GET, Method::HEAD].contains(request.method()) {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        (StatusCode::METHOD_NOT_ALLOWED, TEXT, &b"This server only answers GET and HEAD.\n"[..])
    } else if let Some(file) = find(request.uri().path()) {
        (StatusCode::OK, file.media_type, file.content)
    } else {
        (StatusCode::NOT_FOUND, TEXT, &b"There is no such file. The page is at /\n"[..])
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let mut response = Response::new(Full::new(Bytes::from_static(content)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn find(path: &str) -> Option<&'static File> {
    let path = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: Method, path: &str) -> Response<Full<Bytes>> {
        to(&Request::builder().method(method).uri(path).body(()).expect("a request"))
    }

    #[test]
    fn the_page_is_there_with_all_that_it_names() {
        assert_eq!(ask(Method::GET, "/").status(), StatusCode::OK);
        for (path, media_type) in [
            ("/index.html", "text/html; charset=utf-8"),
            ("/page.css", "text/css; charset=utf-8"),
            ("/icon.svg", "image/svg+xml"),
            ("/sealift/src/element.js", "text/javascript; charset=utf-8"),
            ("/sealift/src/worker.js", "text/javascript; charset=utf-8"),
            ("/sealift/pkg/sealift_wasm_bg.wasm", "application/wasm"),
        ] {
            let response = ask(Method::HEAD, path);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()[CONTENT_TYPE], media_type, "{path}");
        }
    }

    #[test]
    fn nothing_else_is_there() {
        for path in ["/index.html/", "//index.html", "/../etc/passwd", "/sealift", "/sealift/", "/sealift/package.json"]
        {
            assert_eq!(ask(Method::GET, path).status(), StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(ask(Method::POST, "/").status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
