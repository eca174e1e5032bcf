#!/bin/sh
# Ten months in the field: two slots, an OSTree repository and a Flatpak installation take each month's version from a stick, on which
# there are wrong, old and damaged bundles besides deltas and full ones, in runs that are killed. A device only runs `sealift unpack`.
#   field.sh FOLDER SEED        in an empty folder; needs sealift, ostree and flatpak, and no network
set -eu
cd "$1"; seed=$2 month=0 kills=0
export HOME="$PWD" FLATPAK_USER_DIR="$PWD/flatpak" SEALIFT_STATE="$PWD/state" LC_ALL=C
app=app/org.example.App/$(flatpak --default-arch)/stable trust='--trust allowed_signers'
fail() { echo "field: month $month: $1; the log ends with" >&2; tail -n 20 log >&2; exit 1; }
ends() { wanted=$1; shift; got=0; "$@" >> log 2>&1 || got=$?; [ "$got" -eq "$wanted" ] || fail "status $got, not $wanted, of: $*"; }
chance() { seed=$(((seed * 1103515245 + 12345) % 2147483648)); chance=$((seed / 65536 % $1)); }
same() { ends 0 diff -r --no-dereference "$1" "$2"; ends 0 sealift audit "$2" $trust; }

pack() { # NAME VERSION SOURCE...: the full bundle, and deltas from the two versions before
    bundle="--name $1 --bundle-version $2 --key release" name=$1 version=$2; shift 2
    ends 0 sealift pack "$@" $bundle -o "pub/$name-$version.sealift"
    for base in $((version - 2)) $((version - 1)); do
        [ $base -lt 1 ] || ends 0 sealift pack "$@" $bundle -o pub/$name-$base-to-$version.sealift --base pub/$name-$base.sealift $trust --state publisher
    done
}
publish() { # MONTH: files are added, changed, moved and removed; a commit of them; an app
    mkdir -p "os/lib/$1"; echo "VERSION_ID=$1" > os/etc/os-release; ln -sfn "$1" os/lib/current; rm -rf "os/lib/$(($1 - 3))"
    for file in 1 2 3 4 5; do chance 9; seq "$1$chance" $file 150000 > "os/bin/$chance"; seq "$1" 90 > "os/lib/$1/$file"; done
    cp -a os "pub/tree-$1"; echo "$1" > App/files/version
    ends 0 ostree --repo=commits commit --branch=os/stable --tree=dir=os --owner-uid=0 --owner-gid=0
    ends 0 flatpak build-export --disable-sandbox apps App stable
    pack os "$1" os --owner "$(id -u):$(id -g)"; pack host "$1" ostree:commits --ref os/stable; pack app "$1" ostree:apps --ref "$app"
}
fill() { # MONTH: its stick has deltas, in most months full bundles too, and bundles that must be refused
    mkdir "stick-$1"; [ "$1" -eq 1 ] || cp pub/*-to-"$1".sealift "stick-$1"
    for name in os host app; do
        chance 3; if [ "$1" -le 2 ] || [ $chance -gt 0 ]; then cp "pub/$name-$1.sealift" "stick-$1"; fi
        junk=stick-$1/$name; head -c 3000 "pub/$name-$1.sealift" > "$junk-cut.sealift"; echo "no bundle" > "$junk-text.sealift"
        (head -c -60 "pub/$name-$1.sealift"; head -c 60 release) > "$junk-damaged.sealift"
        [ "$1" -eq 1 ] || cp "pub/$name-$(($1 - 1)).sealift" "$junk-old.sealift"
        ends 0 sealift pack App -o "$junk-strange.sealift" --name $name --bundle-version 99 --key stranger
    done
}
take() { # BUNDLE... TARGET [OPTION...]: two runs are killed, if they last long enough; the third must succeed
    for within in 300 40; do
        chance $within; got=0; timeout --foreground -s KILL "$(printf '0.%03d' "$chance")" sealift unpack "$@" $trust >> log 2>&1 || got=$?
        case $got in 0 | 124) ;; 137) kills=$((kills + 1)) ;; *) fail "status $got of: unpack $*" ;; esac
    done
    ends 0 sealift unpack "$@" $trust
}

mkdir -p pub os/bin os/etc App/files App/export
for key in release stranger; do ends 0 sealift key generate -o $key; done
printf 'os,host,app namespaces="sealift" %s\n' "$(cat release.pub)" > allowed_signers
printf '[Application]\nname=org.example.App\nruntime=org.example.Platform/%s\n' "${app#app/*/}" > App/metadata
ends 0 ostree --repo=commits init --mode=archive; ends 0 ostree --repo=host init --mode=bare-user
for month in 1 2 3 4 5 6 7 8 9 10; do
    publish $month; fill $month; slot=slot-$((month % 2)) stick=stick-$month from=$((month - 1))
    if [ $month -eq 1 ]; then ends 0 flatpak --user remote-add --no-gpg-verify publisher apps
        ends 0 flatpak --user install --no-deps --noninteractive publisher org.example.App; fi
    if [ $month -le 2 ]; then take $stick/os*.sealift $slot --update --delete; else # a bundle given by name is judged, and changes nothing if it is refused
        for try in "1 $stick/os-cut" "1 $stick/os-damaged" "1 $stick/os-text" "2 $stick/none" "3 $stick/os-strange" "3 pub/os-1" "3 pub/host-$month" "4 pub/os-$from-to-$month"
        do ends "${try%% *}" sealift unpack "${try#* }.sealift" $slot --update --delete $trust; done
        same pub/tree-$((month - 2)) $slot; take $stick $slot --update --delete; fi
    take $stick/host*.sealift ostree:host; take $stick/app*.sealift ostree:flatpak/repo --remote publisher
    ends 0 flatpak --user update --no-pull --no-deps --noninteractive
    same os $slot; ends 0 diff -r -x .ref App/files "flatpak/$app/active/files"
done
take $stick slot-1 --update --delete; same os slot-0; same os slot-1
for repo in host flatpak/repo; do ends 0 ostree --repo=$repo fsck; ends 0 sealift audit ostree:$repo $trust; done
ends 0 test "$(ostree --repo=host rev-parse os/stable) $(flatpak --user info --show-commit org.example.App)" = \
    "$(ostree --repo=commits rev-parse os/stable) $(ostree --repo=apps rev-parse "$app")"
sealift trust list $trust --json > floors
for name in app host os; do ends 0 grep -q "\"name\":\"$name\",\"version\":10" floors; done
echo "field: ten months, $kills runs killed"
