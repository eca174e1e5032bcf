
# `cargo xtask compare --only boot-composefs`: starts the systemd of a Debian root, and then that of its next version, from the source that
# `boot=` on the kernel's command line names: a composefs store on the first disk, or squashfs or ext4 on one disk for each version.
# With `boot=unpack` it only unpacks the bundles on the second disk to a store on the first.
trust="--trust /data/allowed_signers --state /tmp/state --progress none"
kind=$(sed 's/.*boot=\([a-z0-9]*\).*/\1/' /proc/cmdline)

if [ "$kind" = unpack ]; then
	mount -t ext4 /dev/vda /disc || fail "no disk"
	mkdir /bundles
	wait_for test -b /dev/vdb
	mount -t erofs -o ro /dev/vdb /bundles || fail "no bundles"
	for version in 1 2; do
		sealift unpack /bundles/$version.sealift composefs:/disc/store --seal require $trust --quiet 2> /dev/ttyS1 || fail "cannot unpack"
	done
	umount /disc
	say "over"
	poweroff -f
fi

# reads: prints the number of read requests to the disks so far, and of sectors read
reads() {
	cat /sys/block/vd*/stat | awk '{ requests += $1; sectors += $3 } END { print requests, sectors }'
}

# mount_version VERSION: mounts it at /lower
mount_version() {
	if [ "$kind" = composefs ]; then
		[ "$1" = 2 ] || mount -t ext4 /dev/vda /disc || fail "no disk"
		sealift mount composefs:/disc/store "boot$1" /lower $trust --quiet 2> /dev/ttyS1 || fail "cannot mount"
		return
	fi
	[ "$1" = 1 ] && disk=/dev/vda || disk=/dev/vdb
	mount -t "$kind" -o ro $disk /lower || fail "cannot mount"
}

# The first process that is started in a new process namespace becomes its process 1.
cat > /enter << 'SCRIPT'
mount --bind /dev /new/dev
mount -t sysfs sys /new/sys
exec unshare --pid sh -c '
	(
		mount -t proc proc /new/proc
		cd /new
		mount --move . /
		exec chroot . /sbin/init
	) < /dev/null > /dev/ttyS0 2>&1 &
	echo $! > /tmp/systemd
'
SCRIPT

for version in 1 2; do
	say "$(reads) init-$version"
	mount_version $version
	say "mounted-$version"
	mount_root
	cat > /new/etc/boot-reached <<- SCRIPT
	read -r up rest < /proc/uptime
	echo "boot: \$up multi-user-$version" > /dev/ttyS1
	: > /reached
	SCRIPT
	unshare --mount --ipc --uts sh /enter
	wait_for test -e /upper/files/reached
	say "$(reads) over-$version"
	systemd=$(cat /tmp/systemd)
	kill -9 "$systemd"
	while [ -d "/proc/$systemd" ]; do usleep 50000; done
	umount /new && umount /upper && umount /lower || fail "cannot unmount"
done
