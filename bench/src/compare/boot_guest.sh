#!/bin/busybox sh
# The beginning of the first process of a guest that boots a Debian root; boot.sh or boot_composefs.sh follows.
# It reports on the second serial line, with times in seconds since the kernel started.

export PATH=/bin
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /tmp /disc /lower /upper /new
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp

say() {
	read -r up rest < /proc/uptime
	echo "boot: $up $*" > /dev/ttyS1
}

fail() {
	say "failed: $*"
	poweroff -f
}

# wait_for CONDITION...: waits for at most five minutes
wait_for() {
	tries=6000
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$*"
		usleep 50000
	done
}

# mount_root: mounts /lower at /new, with writes kept in memory. The system runs /etc/boot-reached when it has started.
mount_root() {
	mount -t tmpfs upper /upper
	mkdir /upper/files /upper/work
	mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /new || fail "no root"
	units=/new/etc/systemd/system
	mkdir -p $units/multi-user.target.wants
	cat > $units/boot-reached.service << 'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /etc/boot-reached
UNIT
	ln -s ../boot-reached.service $units/multi-user.target.wants
}

for driver in /modules/*; do insmod "$driver"; done
wait_for test -b /dev/vda
