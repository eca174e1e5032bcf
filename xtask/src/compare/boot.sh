#!/bin/busybox sh
# The first process of the guest of `cargo xtask compare --only boot`: mounts the bundle on the disc, and starts the systemd of its Debian root.
# With `record` on the kernel's command line, it records what the boot reads, and prints the profile.
# What it reports goes to the second serial line; a time is in seconds since the kernel started.

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

# wait_for CONDITION...: for half a minute
wait_for() {
	tries=600
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$*"
		usleep 50000
	done
}

for driver in /modules/*; do insmod "$driver"; done
wait_for test -b /dev/vda
mount -t erofs -o ro /dev/vda /disc || fail "no disc"
say "init"
# The mount goes on when the initramfs is gone.
sealift mount /disc/*.sealift /lower --dev-suid --trust /data/allowed_signers --state /tmp/state --progress none --json > /tmp/said 2> /dev/ttyS1 &
wait_for test -s /tmp/said
say "mounted"

# What the system writes stays in memory.
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
cat > /new/etc/boot-reached << 'SCRIPT'
read -r up rest < /proc/uptime
echo "boot: $up multi-user" > /dev/ttyS1
[ -e /etc/recorder ] || exit 0
recorder=$(cat /etc/recorder)
kill "$recorder"
while kill -0 "$recorder"; do sleep 0.1; done
cat /etc/order > /dev/ttyS1
echo "boot: over" > /dev/ttyS1
SCRIPT
recording=$(grep -w record /proc/cmdline)
for system in proc sys dev; do mount --move /$system /new/$system; done
[ -n "$recording" ] || exec switch_root /new /sbin/init
cp /bin/sealift /new/usr/local/bin/sealift
cat > /new/etc/record << 'SCRIPT'
#!/bin/sh
/usr/local/bin/sealift order record --mount / --output - --quiet > /etc/order 2> /dev/ttyS1 &
echo $! > /etc/recorder
exec /sbin/init
SCRIPT
chmod 755 /new/etc/record
exec switch_root /new /etc/record
