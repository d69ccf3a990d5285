#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a command in the guest with a PMU: guest.py [--timeout S] [--file PATH]... FOLDER COMMAND

FOLDER is what `make vm-programs` filled. The command is one line for a shell, run as root in /perfscope, where tests,
scripts and build lie as in this tree; each --file lies in /perfscope/files. What it writes to stdout and stderr comes
out here as it comes, files that it leaves in /out are in FOLDER/out afterwards, and its status is this program's.
"""

import argparse
import base64
import glob
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
QEMU = "qemu-system-aarch64"
# With a fixed shift each instruction takes 4 ns of the guest's time, and its PMU counts: without -icount there are no
# instructions to be counted. Cycles are those ns, and so exactly 4 times as many. An idle guest goes on at its next timer at
# once (sleep=off): else its clock follows the host's, and may jump over several periods of a counter where the host is busy.
MACHINE = ["-M", "virt", "-cpu", "cortex-a72", "-icount", "shift=2,sleep=off", "-smp", "2", "-m", "1G"]
SILENT = ["-display", "none", "-monitor", "none", "-serial", "stdio", "-nic", "none", "-no-reboot"]
KERNEL_COMMAND_LINE = "console=ttyAMA0 rdinit=/init panic=-1 quiet"
NO_STATUS = 125  # the guest ended without telling one


def copy_into(folder, build, files, command):
    """Fill @folder with what the guest gets on top of its root: this tree's tests, scripts and @build, and the command."""
    tree = os.path.join(folder, "perfscope")
    ignore = shutil.ignore_patterns("__pycache__", "*.d", "*.o")
    for name in "tests", "scripts":
        shutil.copytree(os.path.join(ROOT, name), os.path.join(tree, name), ignore=ignore)
    for name in "tests", "python":
        shutil.copytree(os.path.join(build, name), os.path.join(tree, "build", name), ignore=ignore)
    shutil.copy(os.path.join(build, "perfscope"), os.path.join(tree, "build", "perfscope"))
    os.mkdir(os.path.join(tree, "files"))
    for path in files:
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(tree, "files", os.path.basename(path)))
    os.mkdir(os.path.join(folder, "run"))
    with open(os.path.join(folder, "run", "command"), "w", encoding="utf-8") as file:
        file.write(command + "\n")


def write_initrd(vm, files, command, path):
    """The kernel unpacks archives that stand one behind the other: the root, then what changes."""
    with tempfile.TemporaryDirectory(prefix="perfscope-vm-") as folder, open(path, "wb") as file:
        os.chmod(folder, 0o755)  # it becomes the guest's /
        copy_into(folder, os.path.join(vm, "build"), files, command)
        with open(os.path.join(vm, "root.cpio"), "rb") as root:
            shutil.copyfileobj(root, file)
        file.flush()
        subprocess.run("find . | cpio -o -H newc -R 0:0 --quiet", shell=True, check=True, cwd=folder, stdout=file)


def read_console(lines, show):
    """Hand each line of the command to @show; its status and the archive that it left, None where none was told."""
    status, archive = None, None
    for line in lines:
        line = line.rstrip("\r\n")
        if status is not None or line.startswith("@@up "):
            continue  # the kernel's farewell
        if line == "@@out":
            archive = []
        elif line.startswith("@@status "):
            status = int(line.split()[1])
        elif archive is not None:
            archive.append(line)
        else:
            show(line)
    return status, base64.b64decode("".join(archive)) if archive and status is not None else None


def unpack_out(archive, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if archive:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder)


def boot(vm, files, command, timeout_s, show=lambda line: print(line, flush=True)):
    """Run @command in the guest; its status, or NO_STATUS."""
    initrd = os.path.join(vm, "initrd")
    write_initrd(vm, files, command, initrd)
    [kernel] = glob.glob(os.path.join(vm, "kernel", "vmlinuz-*"))
    qemu = ["timeout", "--signal=KILL", str(timeout_s), QEMU, *MACHINE, *SILENT, "-kernel", kernel, "-initrd", initrd, "-append",
            KERNEL_COMMAND_LINE]
    with subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors="backslashreplace") as process:
        status, archive = read_console(process.stdout, show)
    os.unlink(initrd)
    unpack_out(archive, os.path.join(vm, "out"))
    if status is not None:
        return status
    is_late = process.returncode in (124, -signal.SIGKILL, 128 + signal.SIGKILL)
    show(f"perfscope: the guest {f'was killed after {timeout_s} s' if is_late else 'ended'} before its command did")
    return NO_STATUS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=int, default=600, metavar="S")
    parser.add_argument("--file", action="append", default=[], metavar="PATH")
    parser.add_argument("folder")
    parser.add_argument("command")
    options = parser.parse_args()
    return boot(options.folder, options.file, options.command, options.timeout)


if __name__ == "__main__":
    sys.exit(main())
