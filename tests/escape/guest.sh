#!/usr/bin/env bash
# Runs the sandbox under another kernel: Debian's, in a machine that QEMU emulates, as an ordinary user.
#
# usage: guest.sh DIR    DIR holds `firedoor`; the guest gets its C library from this machine
# KERNEL=bzImage uses another kernel than the one of the Debian release in use. Prints what doctor and the probes say.
# Needs qemu-system-x86, busybox-static and cpio (scripts/setup guest). Emulation is slow: some minutes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
binaries=${1:?name the directory with firedoor}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

if [[ -z ${KERNEL:-} ]]; then
  package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
  apt-get download -qq "$package" 2>/dev/null
  dpkg-deb -x ./linux-image-*.deb kernel
  KERNEL=$(echo kernel/boot/vmlinuz-*)
fi

mkdir -p root/{bin,dev,proc,sys,tmp,etc,home,run,usr/bin,lib,lib64}
cp /bin/busybox root/bin/
cc -O1 -static -pthread -o root/bin/probes "$here/probes.c"
cp "$binaries/firedoor" root/bin/
chmod 755 root/bin/*
# The programs' libraries, at the paths where they look for them.
ldd root/bin/firedoor | awk '/\// { print $(NF - 1) }' | while read -r library; do
  mkdir -p "root$(dirname "$library")" && cp -L "$library" "root$library"
done
echo 'root:x:0:0::/:/bin/sh
nobody:x:65534:65534::/home:/bin/sh' > root/etc/passwd
for name in sh mount mkdir chown chmod cat echo sleep su poweroff uname sysctl ln ls id grep kill; do
  ln -s busybox "root/bin/$name"
done

cat > root/init <<'INIT'
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t tmpfs home /home; mkdir -p /dev/shm /home/work /home/.ssh; mount -t cgroup2 cg /sys/fs/cgroup
echo "kernel $(uname -r)"
busybox ip link set lo up
# As systemd delegates: the caller in one part, what it makes beside that.
G=/sys/fs/cgroup/user
echo "+memory +pids +cpu" > /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $G/caller
echo "+memory +pids +cpu" > $G/cgroup.subtree_control
echo made up > /home/.ssh/id_rsa; chmod 600 /home/.ssh/id_rsa; echo "# made up" > /home/.bashrc
chown -R nobody /home; chown nobody $G $G/cgroup.procs $G/caller $G/caller/cgroup.procs; chmod 1777 /tmp /dev/shm
chmod 666 /dev/null /dev/zero /dev/full /dev/random /dev/urandom
cat > /tmp/inside <<'END'
cd /home/work; export HOME=/home
sleep 600 & VICTIM=$!
printf 'HOME=/home\nWORK=/home/work\nSECRET=/home/.ssh/id_rsa\nSTARTUP=/home/.bashrc\nPID=%s\nTCP=9\nGOODTCP=10\nUDP=9\nUDP2=9\nTRIES=200\n' $VICTIM > settings
(cat settings; echo BASE=1) > base; (cat settings; echo INSIDE=1) > inside
P="read_secret list_home append_startup_file truncate_file truncate_by_open create_in_home hard_link symbolic_link rename_out change_mode change_times root_of_process cwd_of_process listen_everywhere listen_unbound ping netlink_audit unix_pair_datagram unix_bind_abstract trace process_environment process_memory read_memory take_descriptor signal_process signal_by_pidfd signal_guardian signal_guardians_group signal_caller trace_guardian read_guardian limit_process user_namespace cloned_namespace clone_three own_table ring key_planted fault_handler personality_bits queue x32_call x32_socket call_32_bit privileged_program environment_secret exhaust_descriptors exhaust_mixed huge_blocks"
firedoor sandbox doctor
export PROBE_API_TOKEN=x
probes base $P > base.out
firedoor sandbox run --rw /home/work --ro /bin/probes -- /bin/probes /home/work/inside $P > inside.out 2> inside.err; busybox head -3 inside.err
while IFS="	" read -r name state detail; do
  now=$(grep "^$name	" inside.out) || now="$name	missing	it did not run"
  echo "PROBE	$name	$state	$(echo "$now" | busybox cut -f2-)"
done < base.out
mkdir -p .config /home/.config/firedoor/profiles
printf 'description = "probes"\nmatch = {}\n[limits]\nmemory = "200MiB"\nprocesses = 60\n' > /home/.config/firedoor/profiles/tight.toml
for probe in fork_bomb memory_hog; do
  busybox timeout 60 firedoor sandbox run --profile tight --rw /home/work --ro /bin/probes -- /bin/probes /home/work/inside $probe > limit.out 2>&1
  echo "LIMIT	$probe	exit $? $(grep -o 'used more than.*' limit.out)"
done
ls /sys/fs/cgroup/user | grep firedoor- && echo "LEFT	a control group"
END
echo "user $(su nobody -c id)"
# A shell of root's goes there: the topmost group is not the user's.
(echo 0 > $G/caller/cgroup.procs; exec su nobody -c "sh /tmp/inside") 2>&1
echo "END OF GUEST"
poweroff -f
INIT
chmod 755 root/init
(cd root && find . | cpio -o -H newc --quiet) | gzip -1 > initramfs

timeout "${LIMIT:-900}" qemu-system-x86_64 -machine q35,accel=tcg -cpu max -m 1024 -smp 2 -nographic -no-reboot -nic none \
  -kernel "$KERNEL" -initrd initramfs -append "console=ttyS0 quiet panic=-1 lsm=landlock,yama no_timer_check" < /dev/null | tr -d '\r' | tee output
grep -q "END OF GUEST" output || { echo "guest.sh: the guest did not come to its end" >&2; exit 1; }
open=$(awk -F '\t' '$1 == "PROBE" && $3 == "open" && $4 != "blocked" || $1 == "LEFT"' output | wc -l)
echo "open inside: $open of $(awk -F '\t' '$1 == "PROBE" && $3 == "open"' output | wc -l)"
exit $((open > 0))
