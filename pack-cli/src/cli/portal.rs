//! `sealift portal`: serves the administrator's page from the program itself.

use std::net::SocketAddr;

use clap::Args;

use super::failure::Failure;
use super::show::Form;

/// Serve the page that checks a bundle in a browser
///
/// Prints the address of the page, and serves it until stopped. A bundle dropped on the page stays in the browser: the server only sends
/// the page's own files, and receives nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Only this computer can reach 127.0.0.1. To listen on another address, put a TLS
server in front: anyone who can modify the page in transit can change its result.

Examples:
  sealift portal
  sealift portal --listen 127.0.0.1:0                   any free port")]
pub(crate) struct Portal {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7325")]
    listen: SocketAddr,
    #[command(flatten)]
    form: Form,
}

impl Portal {
    #[cfg(feature = "portal")]
    pub(crate) fn run(self) -> Result<(), Failure> {
        use std::io::Write as _;

        #[derive(serde::Serialize)]
        struct Line {
            url: String,
        }

        let portal = sealift::portal::Portal::listen(self.listen)?;
        let (show, url) = (self.form.show(), format!("http://{}/", portal.address()));
        let mut out = show.out();
        if show.json {
            super::show::json_line(&mut out, &Line { url })?;
        } else {
            writeln!(out, "{url}")?;
        }
        // A program that started it through a pipe waits for this line.
        out.flush()?;
        drop(out);
        match portal.serve()? {}
    }

    #[cfg(not(feature = "portal"))]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { listen: _, form: _ } = self;
        Err(Failure::usage(
            "this sealift was built without the page: use one built with `cargo xtask dist` or `cargo xtask portal`",
        ))
    }
}
