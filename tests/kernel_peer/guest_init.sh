#!/bin/busybox sh
# First process of the guest: loads the modules, mounts the peer's root, starts its agent.
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /peer
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
while read -r module; do insmod "/modules/$module" || echo "@@ {\"error\": \"insmod $module\"}"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose peer /peer || echo '@@ {"error": "mount 9p"}'
mount -t proc none /peer/proc
mount -t sysfs none /peer/sys
mount --bind /dev /peer/dev
mount -t tmpfs none /peer/tmp
cp /guest_agent.py /guest_console.py /pattern /peer/tmp/
. /network
ip link set lo up
ip link set eth0 mtu "$MTU" up
ip addr add "$ADDRESS/24" dev eth0
chroot /peer /bin/ip neigh add "$PEER_ADDRESS" lladdr "$PEER_MAC" dev eth0 nud permanent
chroot /peer /usr/bin/rdma link add rxe0 type rxe netdev eth0 || echo '@@ {"error": "rdma link add"}'
stty -echo raw
chroot /peer /usr/bin/python3 -u /tmp/guest_agent.py
poweroff -f
