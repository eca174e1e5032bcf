
# `cargo xtask compare --only boot`: mounts the bundle on the disc, and starts the systemd of its Debian root.
# With `record` on the kernel's command line, it records what the boot reads, and prints the profile.
mount -t erofs -o ro /dev/vda /disc || fail "no disc"
say "init"
# The mount continues after the initramfs is gone.
sealift mount /disc/*.sealift /lower --dev-suid --trust /data/allowed_signers --state /tmp/state --progress none --json > /tmp/said 2> /dev/ttyS1 &
wait_for test -s /tmp/said
say "mounted"
mount_root
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
