//! Reads of commands, recorded through fanotify.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use sealift::order::record::{Options, Scope, record_command};
use sealift_desk::{Desk, is_root, told, wait};
use sealift_store::kernel::cached;

/// Returns whether this machine can record; otherwise reports the test as skipped.
fn can_record() -> bool {
    let can = is_root();
    if !can {
        sealift_desk::skipped("needs root: fanotify");
    }
    can
}

/// Creates a tree with some files.
fn a_tree() -> Desk {
    let desk = Desk::new();
    for name in ["a", "b", "c", "d", "dir/e", "other"] {
        desk.write(&format!("os/{name}"), name);
    }
    desk
}

fn recording(desk: &Desk, line: &str, script: &str) -> Command {
    let mut command = desk.command(line);
    command.args(["--", "sh", "-c", script]);
    command
}

/// Runs `run` while another process reads a file again and again.
fn with_others<T>(file: &Path, run: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert!(Command::new("cat").arg(file).output().unwrap().status.success());
            }
        });
        let result = run();
        is_done.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn what_cannot_be_kept_is_not_recorded() {
    let Some(desk) = can_record().then(a_tree) else { return };
    for (line, said) in [
        ("order record -o nowhere/profile --root os", "cannot create nowhere/profile: No such file or directory"),
        ("order record -o os/a --root os", "os/a already exists"),
        ("order record -o profile --root os/a", "cannot open os/a: Not a directory"),
        ("order record -o profile --mount os/a", "cannot open os/a: Not a directory"),
    ] {
        let output = recording(&desk, line, "touch ran").output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(error.contains(&said.to_lowercase()), "{line}: {error}");
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(!desk.path("ran").exists() && !desk.path("profile").exists(), "{line}");
    }
}

#[test]
fn the_command_and_its_children_in_order_and_nobody_else() {
    let Some(desk) = can_record().then(a_tree) else { return };
    // The last reader is orphaned, and adopted by a process other than the shell.
    let script = "cat os/b os/a > /dev/null; cat os/nowhere; cat os/c os/b; (sh -c 'cat os/dir/e; : > done' &); \
                  while [ ! -e done ]; do sleep 0.01; done; exit 7";
    let (status, said) = with_others(&desk.path("os/other"), || {
        told(&mut recording(&desk, "order record -o boot.order --root os", script))
    });
    assert_eq!((status, desk.text("boot.order")), (Some(7), "# sealift order 1\nb\na\nc\ndir/e\n".into()), "{said}");
    assert!(said.contains("boot.order: 4 files"), "{said}");
}

#[test]
fn programs_and_libraries_are_read_too() {
    let Some(desk) = can_record().then(a_tree) else { return };
    let (status, said) = told(&mut recording(&desk, "order record -o boot.order --json", "cat os/a"));
    assert_eq!((status, &said[..1]), (Some(0), "a"), "{said}");
    let profile = desk.text("boot.order");
    let at = |name: &str| {
        let path = |line: &str| line.split('\t').next().is_some_and(|path| path.ends_with(name));
        profile.lines().position(path).unwrap_or_else(|| panic!("{name}: {profile}"))
    };
    let a = desk.path("os/a").canonicalize().unwrap();
    let a = a.to_str().unwrap().trim_start_matches('/');
    assert!(at("libc.so.6") < at("/cat") && at("/cat") < at(a), "{profile}");
    let json: serde_json::Value = serde_json::from_str(&said[1..]).unwrap();
    assert_eq!(json["files"], profile.lines().count() - 1);
}

/// The recorder alone gets signals: the profile is kept, and the exit status is that of the first signal, unless the command exits with a status of
/// its own.
#[test]
fn signals_end_the_command_and_keep_the_profile() {
    if !can_record() {
        return;
    }
    const WAITS: &str = "cat os/d; : > ready; exec sleep 60";
    const ENDS: &str = "trap 'cat os/a; kill $!; exit 7' TERM; cat os/d; sleep 60 & : > ready; wait";
    let cases: [(&[Signal], &str, i32, &str); 6] = [
        (&[Signal::INT], WAITS, 130, "d\n"),
        (&[Signal::TERM], WAITS, 143, "d\n"),
        (&[Signal::HUP], WAITS, 129, "d\n"),
        // As `timeout` sends them.
        (&[Signal::INT, Signal::INT], WAITS, 130, "d\n"),
        (&[Signal::TERM, Signal::TERM, Signal::TERM], WAITS, 143, "d\n"),
        (&[Signal::INT, Signal::INT], ENDS, 7, "d\na\n"),
    ];
    for (signals, script, status, files) in cases {
        let desk = a_tree();
        let recorder = recording(&desk, "order record -o boot.order --root os", script).spawn().unwrap();
        wait("the command runs", || desk.path("ready").exists());
        for signal in signals {
            kill_process(Pid::from_child(&recorder), *signal).unwrap();
            // Two equal pending signals are merged, and the order of different ones is lost.
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = recorder.wait_with_output().unwrap();
        let profile = format!("# sealift order 1\n{files}");
        assert_eq!((done.status.code(), desk.text("boot.order")), (Some(status), profile), "{signals:?}: {done:?}");
    }
}

#[test]
fn a_signal_ends_the_session() {
    let Some(desk) = can_record().then(a_tree) else { return };
    let recorder = desk.command("order record -o session.order --mount os").spawn().unwrap();
    // It does not report when it has begun: the test reads until it has.
    wait("recording begins", || marks(recorder.id()));
    desk.read("os/c");
    desk.read("os/a");
    kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
    let done = recorder.wait_with_output().unwrap();
    assert_eq!(
        (done.status.code(), desk.text("session.order")),
        (Some(0), "# sealift order 1\nc\na\n".into()),
        "{done:?}"
    );
}

/// Files that are opened but not read cause events again and again.
#[test]
fn a_signal_ends_the_session_of_a_busy_machine() {
    let Some(desk) = can_record().then(a_tree) else { return };
    (0..1000).for_each(|file| desk.write(&format!("os/busy/{file}"), ""));
    let is_done = AtomicBool::new(false);
    let (root, is_done) = (desk.path("os"), &is_done);
    let opens = |folder: &Path| {
        let start = Instant::now();
        while !is_done.load(Ordering::Relaxed) && start.elapsed() < Duration::from_secs(30) {
            (0..1000).for_each(|file| drop(File::options().append(true).open(folder.join(file.to_string())).unwrap()));
        }
    };
    std::thread::scope(|scope| {
        let mut recorder = desk.command("order record -o session.order --mount os").spawn().unwrap();
        wait("recording begins", || marks(recorder.id()));
        for _ in 0..4 {
            scope.spawn(|| opens(&root.join("busy")));
        }
        std::thread::sleep(Duration::from_millis(500));
        fs::read(root.join("c")).unwrap();
        let start = Instant::now();
        kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
        let status = recorder.wait().unwrap();
        let took = start.elapsed();
        is_done.store(true, Ordering::Relaxed);
        assert!(status.success() && took < Duration::from_secs(8), "{status}, {took:?}");
    });
    assert!(desk.text("session.order").contains("\nc\n"));
}

#[test]
fn whole_file_systems_are_recorded_for_containers() {
    let Some(desk) = can_record().then(a_tree) else { return };
    // A mount namespace of its own, as containers have.
    let script = "unshare --mount cat os/d os/a > /dev/null; cat os/b > /dev/null";
    let (status, said) = told(&mut recording(&desk, "order record -o command.order --root os", script));
    assert_eq!((status, desk.text("command.order")), (Some(0), "# sealift order 1\nb\n".into()), "{said}");
    let (status, said) = told(&mut recording(&desk, "order record -o mount.order --mount os", script));
    assert_eq!((status, desk.text("mount.order")), (Some(0), "# sealift order 1\nd\na\nb\n".into()), "{said}");
}

#[test]
fn what_is_only_written_is_not_read() {
    let Some(desk) = can_record().then(a_tree) else { return };
    // Written; appended to, and read later; changed in place; written while it is read; mapped, as Python but not grep does.
    let script = "echo 1 > os/a; echo 2 >> os/b; cat os/dir/e os/b > /dev/null; dd of=os/c conv=notrunc if=/dev/zero count=1; \
                  exec 3< os/d; echo 4 >> os/d; exec 3<&-; \
                  python3 -c 'import mmap; f = open(\"os/other\"); mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[0]'";
    let (status, said) = told(&mut recording(&desk, "order record -o boot.order --root os", script));
    assert_eq!(
        (status, desk.text("boot.order")),
        (Some(0), "# sealift order 1\ndir/e\nb\nd\nother\n".into()),
        "{said}"
    );
}

/// Creates a tree with a file of 64 MiB of which nothing is in the page cache; `None` if that is impossible, and the test is reported as skipped.
fn a_tree_with_a_cold_file() -> Option<Desk> {
    if !can_record() {
        return None;
    }
    let desk = a_tree();
    let mut file = File::create_new(desk.path("os/large")).unwrap();
    io::copy(&mut File::open("/dev/urandom").unwrap().take(64 << 20), &mut file).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    let is_cold = cached(file, 64 << 20).unwrap().is_empty();
    if !is_cold {
        sealift_desk::skipped("needs a folder for temporary files on a disk: it is in memory, where no file is cold");
    }
    is_cold.then_some(desk)
}

/// Returns a command that reads 64 KiB of the large file.
fn reads(mebibyte: u64) -> String {
    format!("dd if=os/large of=/dev/null bs=64k count=1 skip={}", mebibyte * 16)
}

/// Checks the ranges of the large file, and that the other lines of the profile are these. The 64 KiB at each mebibyte are in a range, and no range
/// goes beyond the read-ahead of the kernel, some MiB before and after them, which may leave holes on a busy machine.
#[track_caller]
fn check_ranges(profile: &str, lines: [&str; 2], mebibytes: &[u64]) {
    let rest =
        profile.strip_prefix(&format!("# sealift order 1\n{}large\t", lines[0])).unwrap_or_else(|| panic!("{profile}"));
    let ranges = rest.strip_suffix(&format!("\n{}", lines[1])).unwrap_or_else(|| panic!("{profile}"));
    let ranges: Vec<(u64, u64)> = ranges
        .split(',')
        .map(|range| range.split_once('-').unwrap())
        .map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
        .collect();
    for read in mebibytes {
        let (start, end) = (read << 20, (read << 20) + 65535);
        assert!(ranges.iter().any(|&(first, last)| first <= start && end <= last), "{read}: {profile}");
    }
    let near = |(first, last): (u64, u64)| {
        mebibytes
            .iter()
            .any(|read| (read << 20).saturating_sub(first) < 12 << 20 && last.saturating_sub(read << 20) < 12 << 20)
    };
    assert!(ranges.into_iter().all(near), "{profile}");
}

#[test]
fn places_of_a_large_file_are_ranges_that_are_packed_first() {
    let Some(desk) = a_tree_with_a_cold_file() else { return };
    // The file is cached first, and dropped again.
    desk.read("os/large");
    let script = format!("cat os/b; {}; cat os/a; {}", reads(48), reads(16));
    let (status, said) = told(&mut recording(&desk, "order record -o boot.order --root os --drop-cache", &script));
    assert!(status == Some(0) && said.contains("boot.order: 3 files, 2 ranges\n"), "{said}");
    let profile = desk.text("boot.order");
    check_ranges(&profile, ["b\n", "a\n"], &[16, 48]);
    desk.good("pack os -o os.sealift --name os --bundle-version 1 --level 1 --order boot.order");
    let exported = desk.good("order export os.sealift");
    check_ranges(&exported, ["b\n", "a\n"], &[16, 48]);
}

#[test]
fn a_mapping_is_read_after_its_file_is_closed() {
    let Some(desk) = a_tree_with_a_cold_file() else { return };
    let script = "python3 -c 'import mmap; f = open(\"os/large\"); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); f.close(); \
                  open(\"os/a\").read(); m[(40 << 20):(40 << 20) + 65536]'";
    let (status, said) = told(&mut recording(&desk, "order record -o boot.order --root os", script));
    assert_eq!(status, Some(0), "{said}");
    check_ranges(&desk.text("boot.order"), ["", "a\n"], &[40]);
}

#[test]
fn what_was_cached_before_is_not_lost() {
    let Some(desk) = a_tree_with_a_cold_file() else { return };
    // Two parts are cached before, one of which is read again.
    let file = File::open(desk.path("os/large")).unwrap();
    for mebibyte in [16, 48] {
        file.read_exact_at(&mut vec![0; 65536], mebibyte << 20).unwrap();
    }
    let script = format!("{}; {}", reads(32), reads(16));
    let (status, said) = told(&mut recording(&desk, "order record -o part.order --root os", &script));
    assert!(status == Some(0) && !said.contains("cached"), "{said}");
    check_ranges(&desk.text("part.order"), ["", ""], &[16, 32, 48]);
    // All of it is cached. Where memory is short, the kernel drops pages again: there are several attempts.
    let mut attempts = (0..5).map(|_| {
        desk.read("os/large");
        let told = told(&mut recording(&desk, "order record -o warm.order --root os --force", &script));
        (told, desk.text("warm.order"))
    });
    let is_whole = |(_, profile): &(_, String)| profile == "# sealift order 1\nlarge\n";
    let ((status, said), _) = attempts.find(is_whole).expect("all of the file is recorded");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("  1 large file cached before, recorded whole: see --drop-cache\n"), "{said}");
    let (_, said) = told(&mut recording(&desk, "order record -o json.order --root os --json", &script));
    assert_eq!(
        said.lines().last(),
        Some(r#"{"files":1,"ranges":0,"outside":0,"malformed":0,"elsewhere":0,"cached":1}"#),
        "{said}"
    );
}

#[test]
fn files_are_whole_that_are_small_or_read_past_the_cache() {
    let Some(desk) = a_tree_with_a_cold_file() else { return };
    desk.write("os/small", vec![1; 1 << 20]);
    let record = "order record --root os --drop-cache -o";
    let cases = [
        ("small.order", "dd if=os/small of=/dev/null bs=4k count=1 skip=99".to_owned(), "small\n"),
        ("direct.order", format!("{} iflag=direct", reads(16)), "large\n"),
    ];
    for (profile, script, lines) in cases {
        let (status, said) = told(&mut recording(&desk, &format!("{record} {profile}"), &script));
        assert_eq!((status, desk.text(profile)), (Some(0), format!("# sealift order 1\n{lines}")), "{script}: {said}");
    }
}

#[test]
fn a_stop_before_the_command_does_not_run_it() {
    let Some(desk) = can_record().then(a_tree) else { return };
    let mut command = Command::new("touch");
    command.arg(desk.path("ran"));
    let options = Options { root: desk.path("os"), scope: Scope::Command, drop_cache: true };
    let error = record_command(command, &options, &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, sealift::Error::Cancelled) && !desk.path("ran").exists(), "{error}");
}

#[test]
fn a_command_mounts_for_everybody_as_without_a_recorder() {
    let Some(desk) = can_record().then(a_tree) else { return };
    fs::create_dir(desk.path("mnt")).unwrap();
    let mounted = |to: &str| {
        Command::new("mountpoint").args(["-q", "mnt"]).current_dir(desk.path(to)).status().unwrap().success()
    };
    let plainly = Command::new("unshare")
        .args(["--mount", "--propagation", "unchanged", "mount", "-t", "tmpfs", "none", "mnt"])
        .current_dir(desk.path("."))
        .status()
        .unwrap();
    let is_seen = mounted(".");
    assert!(plainly.success());
    if is_seen {
        assert!(Command::new("umount").arg("mnt").current_dir(desk.path(".")).status().unwrap().success());
    }
    let (status, said) = told(&mut recording(&desk, "order record -o boot.order --root os", "mount -t tmpfs none mnt"));
    assert_eq!((status, mounted(".")), (Some(0), is_seen), "{said}");
    if is_seen {
        assert!(Command::new("umount").arg("mnt").current_dir(desk.path(".")).status().unwrap().success());
    }
}

/// Returns whether a process has a fanotify group with a mark.
fn marks(pid: u32) -> bool {
    let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    infos.flatten().any(|info| fs::read_to_string(info.path()).unwrap_or_default().contains("fanotify sdev"))
}

#[test]
fn commands_that_cannot_be_recorded() {
    let desk = a_tree();
    desk.refused("order record -o boot.order", 2, "give the command");
    desk.refused("order record -- true", 2, "-o");
    desk.refused(
        "order record -o boot.order cat -n a",
        2,
        "tip: put '--' before the command: '-- COMMAND ARGUMENT...'",
    );
    if can_record() {
        desk.refused("order record -o boot.order -- ./nowhere", 2, "cannot run ./nowhere");
        desk.refused("order record -o boot.order --root nowhere -- true", 2, "cannot open nowhere");
        let mut unprivileged = Command::new("setpriv");
        unprivileged.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", env!("CARGO_BIN_EXE_sealift")]);
        unprivileged.args(["order", "record", "-o", "boot.order", "--", "true"]).current_dir(desk.path("."));
        let (status, said) = told(&mut unprivileged);
        assert!(status == Some(2) && said.contains("CAP_SYS_ADMIN"), "{said}");
        assert!(said.contains("mount --record") && said.contains("order import strace"), "{said}");
    }
    assert!(!desk.path("boot.order").exists());
}
