"""Builds small tables in Go's four layouts (.gopclntab), and a program with one, for seeds and
tests."""
import struct

TEXT = 0x401000
MAGICS = {"1.2": 0xFFFFFFFB, "1.16": 0xFFFFFFFA, "1.18": 0xFFFFFFF0, "1.20": 0xFFFFFFF1}


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def program(*pairs):
    """Encodes values of consecutive address ranges: (value, bytes of code)."""
    out, last = b"", -1
    for value, size in pairs:
        change = value - last
        out += varint(change << 1 if change >= 0 else (-change << 1) - 1) + varint(size)
        last = value
    return out + b"\0"


# name, size of the code, (file, bytes)…, (line, bytes)…
FILES = ["/src/main.go", "/src/other.go"]
FUNCTIONS = [
    ("main.main", 0x40, [(0, 0x40)], [(10, 4), (11, 0x10), (9, 0x2C)]),
    ("main.(*T).work", 0x30, [(1, 0x10), (0, 0x20)], [(100, 0x10), (1000, 0x20)]),
    ("main.cold", 0x20, [(1, 0x20)], [(7, 0x20)]),
]


def blob(texts):
    out, offsets = b"", []
    for text in texts:
        offsets.append(len(out))
        out += text if isinstance(text, bytes) else text.encode() + b"\0"
    return out, offsets


def pad(data):
    return data + bytes(-len(data) % 8)


def old_table():
    """Go 1.2: absolute addresses, and offsets from the beginning of the table."""
    count = len(FUNCTIONS)
    head = 16 + 16 * count + 8 + 4
    body, records, at = b"", [], pad(bytes(head))
    base = len(at)

    def add(data):
        nonlocal body
        offset = base + len(body)
        body += data
        return offset

    add(b"\0")
    address, entries = TEXT, []
    for name, size, files, lines in FUNCTIONS:
        name_at = add(name.encode() + b"\0")
        file_at = add(program(*[(number + 1, length) for number, length in files]))
        line_at = add(program(*lines))
        body += bytes(-(base + len(body)) % 8)
        records.append(
            add(struct.pack("<QiiiIIIii", address, name_at, 0, 0, 0, file_at, line_at, 0, 0))
        )
        entries.append(address)
        address += size
    names = [add(name.encode() + b"\0") for name in FILES]
    body += bytes(-(base + len(body)) % 4)
    file_table = add(struct.pack(f"<{len(FILES) + 2}I", len(FILES) + 1, *names, 0))
    out = struct.pack("<IBBBBQ", MAGICS["1.2"], 0, 0, 1, 8, count)
    for entry, record in zip(entries, records):
        out += struct.pack("<QQ", entry, record)
    out += struct.pack("<QI", address, file_table)
    return pad(out) + body


def new_table(version):
    names, name_offsets = blob([name for name, *_ in FUNCTIONS])
    files, file_offsets = blob(FILES)
    units = struct.pack(f"<{len(FILES)}I", *file_offsets)
    programs = [b"\0"]
    for _, _, file_pairs, lines in FUNCTIONS:
        programs += [program(*file_pairs), program(*lines)]
    lines, line_offsets = blob(programs)
    wide = version == "1.16"
    entry_bytes = 16 if wide else 8
    list_bytes = entry_bytes * len(FUNCTIONS) + (8 if wide else 4)
    list_bytes += -list_bytes % 8
    records, offsets, address = b"", [], 0
    for number, (_, size, _, _) in enumerate(FUNCTIONS):
        offsets.append((address, list_bytes + len(records)))
        record = struct.pack("<Q", TEXT + address) if wide else struct.pack("<I", address)
        record += struct.pack(
            "<iiIIIIII",
            name_offsets[number],
            0,
            0,
            0,
            line_offsets[2 * number + 1],
            line_offsets[2 * number + 2],
            0,
            0,
        )
        if version == "1.20":
            record += struct.pack("<i", 5)
        records += pad(record + bytes(4))
        address += size
    offsets.append((address, 0))
    functions = b""
    for address, offset in offsets:
        functions += (
            struct.pack("<QQ", TEXT + address, offset)
            if wide
            else struct.pack("<II", address, offset)
        )
    functions = functions[:list_bytes] + bytes(list_bytes - len(functions[:list_bytes])) + records
    parts = [pad(names), pad(units), pad(files), pad(lines), functions]
    head_bytes = 8 + 8 * (7 if wide else 8)
    out = struct.pack("<IBBBBQQ", MAGICS[version], 0, 0, 1, 8, len(FUNCTIONS), len(FILES))
    if not wide:
        out += struct.pack("<Q", TEXT)
    at = head_bytes
    for part in parts:
        out += struct.pack("<Q", at)
        at += len(part)
    return out + b"".join(parts)


def table(version):
    return old_table() if version == "1.2" else new_table(version)


def elf(table_bytes, code_bytes=0x100):
    """An ELF program with a code section and the table."""
    names = b"\0.text\0.gopclntab\0.shstrtab\0"
    table_at, names_at = 0x1000 + code_bytes, 0x1000 + code_bytes + len(table_bytes)
    headers_at = names_at + len(names)
    headers_at += -headers_at % 8

    def section(name, kind, flags, address, offset, size):
        return struct.pack(
            "<IIQQQQIIQQ",
            names.index(name) if name else 0,
            kind,
            flags,
            address,
            offset,
            size,
            0,
            0,
            16 if kind else 0,
            0,
        )

    sections = (
        section(b"", 0, 0, 0, 0, 0)
        + section(b".text", 1, 6, TEXT, 0x1000, code_bytes)
        + section(b".gopclntab", 1, 2, 0x600000, table_at, len(table_bytes))
        + section(b".shstrtab", 3, 0, 0, names_at, len(names))
    )
    header = (
        b"\x7fELF\2\1\1"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, TEXT, 64, headers_at, 0, 64, 56, 1, 64, 4, 3)
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, TEXT, TEXT, code_bytes, code_bytes, 0x1000)
    data = header + load
    data += bytes(0x1000 - len(data)) + b"\x90" * code_bytes + table_bytes + names
    return data + bytes(headers_at - len(data)) + sections


def expected():
    """(address, function, file, line) for every byte of the code."""
    rows, address = [], TEXT
    for name, size, files, lines in FUNCTIONS:
        file_of = [number for number, length in files for _ in range(length)]
        line_of = [line for line, length in lines for _ in range(length)]
        rows += [(address + at, name, FILES[file_of[at]], line_of[at]) for at in range(size)]
        address += size
    return rows
