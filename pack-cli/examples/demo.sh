#!/bin/sh
# Packs, signs, verifies, unpacks and compares a tree on this machine, beside tar and zstd.
#
#   pack-cli/examples/demo.sh [TREE]
#
# TREE is by default the larger of cargo's registry and /usr/share. All files lie in one directory below TMPDIR (or /tmp, or /var/tmp, where
# there is room), which is named first and removed at the end, also after Ctrl-C. LEVEL is zstd's level, JOBS the number of threads, on both
# sides; SEALIFT is the program, which otherwise cargo builds.
set -eu

level=${LEVEL:-3}
jobs=${JOBS:-$(nproc)}

main() {
    tree=$(realpath -- "${1:-$(larger "${CARGO_HOME:-$HOME/.cargo}/registry/src" /usr/share)}")
    bytes=$(find "$tree" -type f -printf '%s\n' | total)
    files=$(find "$tree" -type f | wc -l)
    needed=$((bytes * 3 + $(find "$tree" | wc -l) * 4096))
    scratch=
    trap clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    scratch=$(mktemp -d "$(place "$needed")/sealift-demo-XXXXXX")
    echo "$tree: $files files, $(size "$bytes")"
    echo "Everything is written to $scratch, at most $(size "$needed"), and removed at the end."
    program=${SEALIFT:-$(build)}
    cd "$scratch"
    # Whoever comes first has no longer way than who comes last.
    find "$tree" -type f -exec cat {} + > /dev/null

    show sealift key generate -o key
    sealift trust add demo key.pub --trust allowed_signers -q
    timed pack sealift pack "$tree" -o demo.sealift --name demo --bundle-version 1 --key key --level "$level" -j "$jobs"
    show sealift info demo.sealift --trust allowed_signers
    timed check sealift verify demo.sealift --trust allowed_signers -j "$jobs"
    timed check sealift verify --deep demo.sealift --trust allowed_signers -j "$jobs"
    timed unpack sealift unpack demo.sealift tree --trust allowed_signers -j "$jobs"
    compare
    rm -rf tree

    if command -v tar > /dev/null && command -v zstd > /dev/null; then
        timed pack sh -c "tar -C '$(printf %s "$tree" | sed "s/'/'\\\\''/g")' --sort=name --xattrs -cf - . | zstd -q --ultra -$level -T$jobs > demo.tar.zst"
        timed check zstd -q -t demo.tar.zst
        mkdir tar
        timed unpack sh -c 'zstd -q -d < demo.tar.zst | tar -C tar --xattrs -xpf -'
    else
        printf '\nInstall tar and zstd to have their times here too.\n'
    fi
    table
}

# Runs the program that is shown, apart from what this machine knows of earlier versions.
sealift() {
    SEALIFT_STATE=$scratch/state "$program" "$@"
}

build() {
    cargo build --release --quiet --manifest-path "$(dirname -- "$0")/../Cargo.toml" >&2
    target=${CARGO_TARGET_DIR:-$(dirname -- "$0")/../../target}
    realpath -- "$target/release/sealift"
}

clean() {
    if [ -n "$scratch" ]; then
        # The copy of a tree may have directories that even their owner may not write to.
        chmod -R u+rwX -- "$scratch" 2> /dev/null || :
        rm -rf -- "$scratch"
        echo "Removed $scratch."
    fi
}

# Prints the first of the usual places with so many bytes free.
place() {
    for directory in ${TMPDIR:+"$TMPDIR"} /tmp /var/tmp; do
        free=$(df --output=avail -B1 -- "$directory" 2> /dev/null | tail -n 1)
        if [ "${free:-0}" -ge "$1" ]; then
            echo "$directory"
            return
        fi
    done
    echo "demo: no place has $(size "$1") free: set TMPDIR, or give a smaller TREE" >&2
    exit 2
}

larger() {
    for directory; do
        if [ -d "$directory" ]; then
            printf '%s\t%s\n' "$(du -s -- "$directory" | cut -f 1)" "$directory"
        fi
    done | sort -n | tail -n 1 | cut -f 2
}

total() {
    awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

size() {
    numfmt --to=iec-i --suffix=B --format=%.1f "$1"
}

# Shows a command as a person would type it, and runs it.
show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

# The same, and notes how long it took for the medium to have what it wrote.
timed() {
    job=$1
    shift
    case $1 in
        sh) printf '\n$ %s\n' "$3" ;;
        *) printf '\n$ %s\n' "$*" ;;
    esac
    sync -f .
    start=$(date +%s.%N)
    "$@"
    sync -f .
    end=$(date +%s.%N)
    stored=-
    if [ "$job" = pack ]; then
        stored=$(size "$(stat -c %s "$([ -e demo.tar.zst ] && echo demo.tar.zst || echo demo.sealift)")")
    fi
    case $* in
        *--deep*) name='sealift verify --deep' ;;
        "sealift "*) name="sealift $2" ;;
        *) name='tar and zstd' ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$job" "$name" "$stored" "$start" "$end" >> times
}

# Compares both trees by other programs than the one that is shown.
compare() {
    printf '\n'
    diff -r --no-dereference -- "$tree" tree
    for side in "$tree" tree; do
        # Owners only where root sets them; a directory's size and number of links are the file system's own.
        (cd "$side" && find . -printf "%p\t%y%m\t$(owners)%l" -a \( -type d -printf '\n' -o -printf '\t%s\t%n\t%Ts\n' \) | sort)
    done > listed
    half=$(($(wc -l < listed) / 2))
    head -n "$half" listed > before
    tail -n +$((half + 1)) listed | diff before -
    echo "identical: $half entries, in content, types, modes, times and links"
}

owners() {
    if [ "$(id -u)" = 0 ]; then
        printf '%s' '%U:%G\t'
    fi
}

table() {
    printf '\n%-8s %-24s %10s %9s %12s\n' job by stored seconds 'a second'
    sort -s -k 1,1 times | awk -F '\t' -v bytes="$bytes" '{
        seconds = $5 - $4
        if (seconds < 0.001) seconds = 0.001
        printf "%-8s %-24s %10s %9.2f %8.0f MiB\n", $1, $2, $3, seconds, bytes / seconds / 1048576
    }'
    printf 'Both read a warm cache and wait until the medium has what they wrote. zstd checks no signature.\n'
}

main "$@"
