//! `sealift portal`: the administrator's page, from the program itself.

use std::net::SocketAddr;

use clap::Args;

use super::failure::Failure;
use super::show::Form;

/// Serve the page that checks a bundle in a browser
///
/// Prints the page's address, and serves it until it is stopped. A bundle that is dropped on the page stays in the browser: the program
/// gives the page's own files and takes nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Only this computer reaches 127.0.0.1. Whoever listens elsewhere puts a server with TLS in front: who can change the page on its way can
change what it says.

Examples:
  sealift portal
  sealift portal --listen 127.0.0.1:0                   any port that is free")]
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
        // Whoever started it in a pipe waits for this line.
        out.flush()?;
        drop(out);
        match portal.serve()? {}
    }

    #[cfg(not(feature = "portal"))]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { listen: _, form: _ } = self;
        Err(Failure::usage(
            "this sealift was built without the page: take one that `cargo xtask dist` makes, or build it with `cargo xtask portal`",
        ))
    }
}
