"""A root folder for a machine that tests start, as the archive that Linux unpacks at its start:
cpio's "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst of Linux)."""

import pathlib
import re
import stat
import subprocess


class Archive:
    def __init__(self):
        self.entries = {}

    def add(self, name, data, mode=stat.S_IFREG | 0o755):
        """A file at /name with its folders."""
        parts = pathlib.PurePosixPath(name).parts
        for depth in range(1, len(parts)):
            self.entries.setdefault("/".join(parts[:depth]), (stat.S_IFDIR | 0o755, b""))
        self.entries["/".join(parts)] = (mode, data)

    def write(self, path):
        with open(path, "wb") as out:
            for number, (name, (mode, data)) in enumerate(sorted(self.entries.items()), 1):
                out.write(entry(number, name, mode, data))
            out.write(entry(0, "TRAILER!!!", 0, b""))


def entry(inode, name, mode, data):
    fields = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def needed(path):
    """Names of the shared libraries that an ELF file requires, and the path of its loader."""
    text = subprocess.run(
        ["readelf", "-ldW", path], check=True, capture_output=True, text=True
    ).stdout
    loader = re.search(r"interpreter: ([^\]]+)\]", text)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text), loader and loader[1]


def with_libraries(archive, programs, folders, root=pathlib.Path("/")):
    """Adds {name: path} to /bin and all libraries that they need, from folders, to /lib; the loader
    is added at the path that the programs contain."""
    waiting, seen = list(programs.values()), set()
    for name, path in programs.items():
        archive.add(f"bin/{name}", path.read_bytes())
    while waiting:
        names, loader = needed(waiting.pop())
        if loader:
            archive.add(loader.lstrip("/"), (root / loader.lstrip("/")).resolve().read_bytes())
        for name in set(names) - seen:
            seen.add(name)
            path = next(folder / name for folder in folders if (folder / name).exists()).resolve()
            archive.add(f"lib/{name}", path.read_bytes())
            waiting.append(path)
