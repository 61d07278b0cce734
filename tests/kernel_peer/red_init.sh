#!/bin/busybox sh
# First process of the guest without a network: loads the modules, mounts the peer's root, runs the script.
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /peer
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
while read -r module; do insmod "/modules/$module" || echo "insmod $module"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose peer /peer
mount -t proc none /peer/proc
mount -t tmpfs none /peer/tmp
cp /red_guest.py /scenarios.json /peer/tmp/
ip link set lo up
PATH=/bin:/sbin:/usr/bin:/usr/sbin chroot /peer /usr/bin/python3 -u /tmp/red_guest.py
poweroff -f
