# SPDX-License-Identifier: MIT
"""A load of one thread that makes as many kinds of event fire as it can: every_event.py FOLDER

It prints its pid, waits for a line on stdin, does it all once, executes /bin/true, and so ends.
"""

import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NAME = 15
MADV_DONTNEED = 4


def use_files(folder):
    path = os.path.join(folder, "file")
    with open(path, "wb") as file:
        file.write(b"x" * 300_000)
        file.flush()
        os.fsync(file.fileno())
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_SH)
        os.posix_fallocate(file.fileno(), 300_000, 100_000)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.read()
        with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
            pages[0], pages[200_000]
    os.chmod(path, 0o600)
    os.rename(path, path + "2")
    os.link(path + "2", path)
    os.unlink(path)
    os.truncate(path + "2", 1000)
    os.mkdir(os.path.join(folder, "d"))
    os.symlink("nowhere", os.path.join(folder, "l"))
    os.listdir(folder)
    os.stat(folder)
    os.statvfs(folder)
    os.sync()
    for name in ("/etc/\udcff\udcfe", "", "nowhere"):
        try:
            os.open(name, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            pass


def use_memory():
    for size in (1 << 16, 1 << 18):
        pages = mmap.mmap(-1, size)
        for at in range(0, size, 4096):
            pages[at] = 1
        pages.madvise(MADV_DONTNEED)
        pages.close()


def use_signals():
    signal.signal(signal.SIGUSR1, lambda number, frame: None)
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    time.sleep(0.005)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def use_sockets(folder):
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            server = socket.create_server((address, 0), family=family)
        except OSError:
            continue
        client = socket.create_connection(server.getsockname()[:2])
        peer, _ = server.accept()
        client.sendall(b"x" * 20_000)
        peer.recv(30_000)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()  # by a reset
        peer.close()
        refused = server.getsockname()[:2]
        server.close()
        try:
            socket.create_connection(refused)
        except OSError:
            pass
        with socket.socket(family, socket.SOCK_DGRAM) as sender, socket.socket(family, socket.SOCK_DGRAM) as receiver:
            receiver.bind((address, 0))
            sender.sendto(b"hello", receiver.getsockname())
            receiver.recv(100)
            try:
                sender.sendto(b"nobody", (address, 9))
            except OSError:
                pass
    one, other = socket.socketpair()
    one.send(b"x")
    other.recv(1)
    select.select([one], [one], [], 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.bind((0, 0))


def use_processes():
    for _ in range(3):
        pid = os.fork()
        if not pid:
            os._exit(3)
        os.waitpid(pid, 0)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(read_end, 1)
        os._exit(0)
    time.sleep(0.01)
    os.write(write_end, b"x")
    os.waitpid(pid, 0)
    os.sched_yield()
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    for cpu in (*os.sched_getaffinity(0), 0):
        os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.nice(1)
    poll = select.epoll()
    poll.poll(0.002)
    libc.prctl(PR_SET_NAME, b"\xff\xfename", 0, 0, 0)
    time.sleep(0.002)


def use_cgroup():
    path = f"/sys/fs/cgroup/unified/perfscope-{os.getpid()}"
    if not os.path.isdir(os.path.dirname(path)):
        path = f"/sys/fs/cgroup/perfscope-{os.getpid()}"
    try:
        os.mkdir(path)
        with open(f"{path}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")
        with open(f"{path}/../cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")
        os.rmdir(path)
    except OSError:
        pass


def use_kernel_log():
    try:
        with open("/dev/kmsg", "w", encoding="ascii") as file:
            file.write("<7>every_event: a line in the kernel's log\n")
    except OSError:
        pass


def spin(seconds):
    end = time.perf_counter() + seconds  # without a system call
    while time.perf_counter() < end:
        pass


def main():
    folder = sys.argv[1]
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    use_files(folder)
    use_memory()
    use_signals()
    use_sockets(folder)
    use_processes()
    use_cgroup()
    use_kernel_log()
    spin(0.02)
    os.execv("/bin/true", ["true"])


main()
