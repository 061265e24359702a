#!/usr/bin/env python3
"""Forwards Ethernet frames between interfaces, each a fixed time after it came: a switch with long
cables, for kernels without `tc netem`. Bandwidth is limited to one core.

    slow_network.py DELAY_MS INTERFACE INTERFACE...

Frames for many go to all others. Runs until it is killed. The hosts at the other ends must send
whole frames of the wire's size, checksums included: turn their offloads off (--no-offload INTERFACE).
"""
import array
import collections
import fcntl
import select
import socket
import struct
import sys
import time

SIOCETHTOOL = 0x8946
ETH_P_ALL = 3
OFFLOADS_OFF = (0x17, 0x1F, 0x25)  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO


def turn_offloads_off(interface):
    """Disables offloading, since a veth leaves checksums to hardware, and copied frames would lack them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS_OFF:
            data = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), data.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, request)


def forward(delay, interfaces):
    ports = []
    for interface in interfaces:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        port.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 20)
        port.bind((interface, 0))
        ports.append(port)
    home = {}  # Ethernet address: port
    late = collections.deque()  # (when, frame, ports); the delay is the same, so in order
    print("forwarding", flush=True)
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        ready = select.select(ports, [], [], wait)[0]
        now = time.monotonic()
        for port in ready:
            while True:
                try:
                    frame, source = port.recvfrom(65536, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                if source[2] == socket.PACKET_OUTGOING:
                    continue
                home[frame[6:12]] = port
                to = home.get(frame[0:6])
                late.append((now + delay, frame, [to] if to else [p for p in ports if p is not port]))
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, frame, to = late.popleft()
            for port in to:
                try:
                    port.send(frame)
                except OSError as error:  # too long, or the interface is down: a switch drops it
                    print("dropped", len(frame), "bytes:", error, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--no-offload":
        turn_offloads_off(sys.argv[2])
    elif len(sys.argv) >= 4:
        forward(float(sys.argv[1]) / 1000, sys.argv[2:])
    else:
        sys.exit(__doc__)
