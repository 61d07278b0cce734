#!/bin/busybox sh
# First process of the guest: loads the modules, lays the host's files and those of Debian's packages
# over each other, names the network cards, starts the keeper.
/bin/busybox --install -s /bin
export PATH=/bin
fail() { echo "@@ {\"error\": \"$*\"}"; }
mkdir -p /proc /sys /dev /peer /host
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
while read -r module; do insmod "/modules/$module" || fail "insmod $module"; done </modules/order
for tag in peer host; do
  mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=524288,cache=loose "$tag" "/$tag" || fail "mount $tag"
  mount -t proc none "/$tag/proc"
  mount -t sysfs none "/$tag/sys"
done
# What the host has comes first; the packages have the RDMA libraries.
libraries=usr/lib/x86_64-linux-gnu
mount -t overlay -o "ro,lowerdir=/host/$libraries:/peer/$libraries:/peer/lib/x86_64-linux-gnu" none "/host/$libraries" ||
  fail "overlay of libraries"
mount -t overlay -o ro,lowerdir=/host/etc:/peer/etc none /host/etc || fail "overlay of /etc"
ip link set lo up
while read -r name mac mtu addresses; do
  for device in /sys/class/net/*; do
    [ "$(cat "$device/address")" = "$mac" ] && ip link set "${device##*/}" name "$name"
  done
  ip link set "$name" mtu "$mtu" up || fail "no card $name"
  for address in $addresses; do ip addr add "$address" dev "$name"; done
done </cards
# The keeper has the packages' tools and the modules for RDMA below /dev, whatever is on the host.
mkdir /dev/peer
mount --rbind /peer /dev/peer
mv /guest_keeper.py /guest_console.py /rdma_modules /dev/shm/
mount --rbind /dev /host/dev
stty -echo raw
. /machine
TMPDIR=/dev/shm chroot /host "$PYTHON" -E -s -S -u /dev/shm/guest_keeper.py
poweroff -f
