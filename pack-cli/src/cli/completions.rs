//! `sealift completions`: completion scripts for shells.

use std::io::Write as _;

use clap::{Arg, Args, Command, ValueHint};
use clap_complete::Shell;

use super::failure::Failure;
use super::help;

/// Generate shell completions
///
/// Save the output where your shell looks for completions, as in the examples. The Debian package installs them for bash, zsh and fish.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift completions bash > ~/.local/share/bash-completion/completions/sealift
  sealift completions zsh > ~/.zfunc/_sealift          a directory in your $fpath
  sealift completions fish > ~/.config/fish/completions/sealift.fish
  sealift completions elvish > ~/.config/elvish/lib/sealift.elv
  sealift completions powershell > sealift.ps1")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Removes options from the completions of an empty word: unlike other shells, bash would offer them where files are wanted.
const BASH: &str = r#"
_sealift_words() {
    _sealift "$@"
    [[ -z $2 ]] || return 0
    local word words=()
    for word in "${COMPREPLY[@]}"; do
        [[ $word == -* ]] || words+=("$word")
    done
    COMPREPLY=("${words[@]}")
}
complete -F _sealift_words -o bashdefault -o default sealift
"#;

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut out = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "sealift", &mut out);
        if self.shell == Shell::Bash {
            out.extend(BASH.bytes());
        }
        Ok(std::io::stdout().write_all(&out)?)
    }
}

/// Returns the command line without hidden verbs, which would be offered too.
fn command() -> Command {
    let full = help::command();
    let shown = full.get_subcommands().filter(|verb| !verb.is_hide_set());
    let command = Command::new("sealift").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    let command = command.args(full.get_arguments().cloned());
    hinted(command.subcommands(shown.cloned()))
}

/// Sets the value hint of each argument that is not a file: by default, shells offer files.
fn hinted(command: Command) -> Command {
    let hint = |arg: Arg| match arg.get_value_hint() {
        ValueHint::Unknown if arg.get_action().takes_values() => arg.value_hint(ValueHint::Other),
        // bash quotes completions only for these hints.
        ValueHint::AnyPath => arg.value_hint(ValueHint::FilePath),
        _ => arg,
    };
    command.mut_args(hint).mut_subcommands(hinted)
}
