"""Commands of upper protocols, as the traces of the kernels at both ends saw them (NAME.expect.tsv beside NAME.pcap), against those of `rdmatrace ops`."""
import glob
import json
import os
import re
import subprocess

BUILD = os.environ.get("BUILD", "build")
FABRICS = 0x7f
# Names of the kernel's trace events: opcode and type of a fabrics command.
NVME = {"nvme_fabrics_type_property_set": (FABRICS, 0), "nvme_fabrics_type_connect": (FABRICS, 1), "nvme_fabrics_type_property_get": (FABRICS, 4),
        "nvme_admin_get_log_page": (2, None), "nvme_admin_identify": (6, None), "nvme_admin_abort_cmd": (8, None), "nvme_admin_set_features": (9, None),
        "nvme_admin_get_features": (10, None), "nvme_admin_async_event": (12, None), "nvme_admin_keep_alive": (0x18, None), "nvme_cmd_flush": (0, None),
        "nvme_cmd_write": (1, None), "nvme_cmd_read": (2, None), "nvme_cmd_compare": (5, None), "nvme_cmd_write_zeroes": (8, None), "nvme_cmd_dsm": (9, None),
        "nvme_cmd_verify": (12, None), "nvme_cmd_resv_register": (13, None), "nvme_cmd_resv_report": (14, None), "nvme_cmd_resv_acquire": (17, None),
        "nvme_cmd_resv_release": (21, None)}
ABANDONED = (0x4006, 7)  # the target completes Asynchronous Event Requests so when the controller goes away: nothing is sent


def captures(prefix):
    """Captures with a file of what the kernels saw."""
    folders = ["captures"] + [d for d in os.environ.get("RDMATRACE_CAPTURES", "").split(":") if d]
    found = {}
    for d in folders:
        for path in sorted(glob.glob("%s/%s*.expect.tsv" % (d, prefix))):
            found.setdefault(os.path.basename(path), path.replace(".expect.tsv", ".pcap"))
    return list(found.values())


def named(name):
    """Captures without such a file."""
    return [path for d in os.environ.get("RDMATRACE_CAPTURES", "").split(":") if d for path in glob.glob("%s/%s.pcap" % (d, name))]


def ops(path, *more):
    """The commands, in the order in which they began."""
    done = subprocess.run([BUILD + "/rdmatrace", "ops", "--commands", "-T", "json", *more, path], stdout=subprocess.PIPE, check=True)
    return sorted(json.loads(done.stdout), key=lambda row: row["number"])


def witnesses(path, first=2):
    """The rows of the kernels' traces, by kernel, from this column on."""
    rows = {}
    with open(path.replace(".pcap", ".expect.tsv"), encoding="utf-8", errors="replace") as f:
        for line in f:
            column = line.rstrip("\n").split("\t")
            if column[0].startswith("kernel-"):
                rows.setdefault(column[0], []).append(column[first:])
    return rows


def served(path):
    """By queue and cid, how long the kernel's NVMe target had each command: ns from its tracepoint nvmet_req_init to nvmet_req_complete."""
    begun, took = {}, {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.search(r" (\d+)\.(\d{6}): nvmet_req_(init|complete): \S+ qid=(\d+), cmdid=(\d+)", line)
            if not m:
                continue
            key, t = (int(m[4]), int(m[5])), int(m[1] + m[2]) * 1000
            if m[3] == "init":
                took.setdefault(key, []).append(None)
                begun[key] = (len(took[key]) - 1, t)
            elif key in begun:
                n, since = begun.pop(key)
                took[key][n] = t - since
    return took


def arguments(text):
    return {name: int(value, 0) for name, value in re.findall(r"(\w+)=(0x[0-9a-f]+|\d+)(?:,|$)", text)}


def dwords(v):
    """cdw10 to cdw15 as bytes."""
    return b"".join(v["cdw%d" % n].to_bytes(4, "little") for n in range(10, 16))


def same_arguments(v, text):
    """Whether the arguments that the kernel printed are those of our command."""
    a, d = arguments(text), dwords(v)
    if text.startswith("cdw10="):
        return bytes.fromhex(text[6:].replace(" ", "")) == d
    number = {"recfmt": d[0] | d[1] << 8, "qid": v["cdw10"] >> 16, "sqsize": v["cdw11"] & 0xffff, "cattr": v["cdw11"] >> 16 & 0xff, "kato": v["cdw12"],
              "attrib": v["cdw10"] & 0xff, "ofst": v["cdw11"], "value": v["cdw12"] | v["cdw13"] << 32, "cns": v["cdw10"] & 0xff, "ctrlid": v["cdw10"] >> 16,
              "fid": v["cdw10"] & 0xff, "sv": v["cdw10"] >> 31, "sel": v["cdw10"] >> 8 & 7, "cdw11": v["cdw11"], "slba": v["cdw10"] | v["cdw11"] << 32,
              "len": v["cdw12"] & 0xffff, "ctrl": v["cdw12"] >> 16, "dsmgmt": v["cdw13"], "reftag": v["cdw14"], "nr": v["cdw10"] & 0xff, "attributes": v["cdw11"]}
    return bool(a) and all(number[name] == value for name, value in a.items())


def same(row, seen):
    """Whether our row is the command that a kernel saw: queue, identifier, namespace, command, arguments, result, status."""
    qid, cid, nsid, name, text, result, status = seen
    v, status = row["values"], int(status, 0)
    opcode, fctype = NVME.get(name, (None, None))
    if opcode is None and re.fullmatch(r"0x[0-9a-f]+|\d+", name):
        opcode = int(name, 0)
    if (v["opcode"], v["fctype"]) != (opcode, fctype) or v["cid"] != int(cid) or not same_arguments(v, text):
        return False
    if fctype is None and (v["nsid"] != int(nsid) or v["queue"] != int(qid)):
        return False
    if v["status_code"] is None:
        return opcode == 12 and status in ABANDONED
    return v["status_code"] == status and v["result"] == int(result, 0)


def nvme(path, rows):
    """What is wrong: each row of each kernel must be one of ours, in their order."""
    for kernel, seen in witnesses(path).items():
        at = 0
        for n, row in enumerate(seen):
            place = next((i for i in range(at, len(rows)) if same(rows[i], row)), None)
            if place is None:
                yield "%s: row %d of %s is not in the output, or not in its place: %s" % (path, n, kernel, row)
            else:
                at = place + 1
    seen = max(len(r) for r in witnesses(path).values())
    if not seen <= len(rows) <= seen + 5:
        yield "%s: %d commands, the kernels saw %d" % (path, len(rows), seen)
    for row in rows:
        moved = row["bytes_to_client"] + row["bytes_from_client"]
        asked = row["asked_bytes_to_client"] + row["asked_bytes_from_client"]
        if row["response_frame"] and not row["failed"] and moved != asked:
            yield "%s: command %d moved %d of %d bytes" % (path, row["number"], moved, asked)


# --- RPC over RDMA and NFS --------------------------------------------------------------------------------------------------------------
PROGRAMS = {"nfsd3": (100003, 3), "nfsd4": (100003, 4), "nfsacl3": (100227, 3)}
# The client's names of calls of version 4, and the operation that the compound is for, where the two differ.
PURPOSE = {"FSINFO": "GETATTR", "GET_LEASE_TIME": "GETATTR", "LOOKUP_ROOT": "GETATTR", "OPEN_NOATTR": "OPEN", "PATHCONF": "GETATTR",
           "SERVER_CAPS": "GETATTR", "STATFS": "GETATTR", "SYMLINK": "CREATE"}


def chunk_bytes(text):
    """The bytes that a call offered to be read and to be written, as the client's kernel saw it; a segment that it registered twice has one address."""
    length = {"read": 0, "write": 0, "reply": 0}
    for name, n, _ in sorted(set(re.findall(r"(\w+):(\d+)@\w+[+](\w+)", text))):
        length[name] += int(n)
    return length["read"], length["write"] + length["reply"]


def same_call(row, seen):
    """Whether our row is the call that the kernels saw: xid, program, procedure, operations with their statuses, range, chunks."""
    xid, procedure, _header, _xdr, _transfer, chunks, server, _end = seen
    v = row["values"]
    program, name = re.search(r"; (\w+)[.](\w+)", server).groups()
    if (v["xid"], v["program"], v["version"]) != (int(xid, 0), *PROGRAMS[program]) or v["procedure_name"] != name:
        return False
    if v["credits_requested"] != int(re.search(r"RDMA_\w+ credits (\d+)", server)[1]) or not 0 < v["credits_granted"] <= v["credits_requested"]:
        return False
    purpose = procedure.split()[1]
    if row["name"].split()[-1] != (PURPOSE.get(purpose, purpose) if name == "COMPOUND" else name):
        return False
    done = re.findall(r"\b([A-Z_]+)=(\d+)", server)
    if done and (v["operations"].split()[:v["operations_done"]] != [op for op, _ in done] or v["status_code"] != int(done[-1][1])):
        return False
    ranges = re.search(r"(?:read|write) offset (\d+) length (\d+)", server)
    if ranges and (v["offset"], v["count"]) != tuple(int(n) for n in ranges.groups()):
        return False
    read, written = chunk_bytes(chunks)
    inside = any(word in procedure for word in ("WRITE", "READLINK", "SYMLINK"))  # data of few bytes are in the message
    return (row["asked_bytes_from_client"] == read or inside) and (row["asked_bytes_to_client"] == written or inside)


def nfs(path, rows):
    """What is wrong: each row of the kernels must be one of ours, in their order, and all bytes that a reply states were moved."""
    seen, at = witnesses(path, 1)["kernel-A+B"], 0
    for n, row in enumerate(seen):
        place = next((i for i in range(at, len(rows)) if same_call(rows[i], row)), None)
        if place is None:
            yield "%s: row %d of the kernels is not in the output, or not in its place: %s" % (path, n, row)
        else:
            at = place + 1
    if len(seen) != len(rows):
        yield "%s: %d calls, the kernels saw %d" % (path, len(rows), len(seen))
    for row in rows:
        written = row["values"]["bytes_written"]
        if not row["response_frame"]:
            yield "%s: call %d has no reply" % (path, row["number"])
        elif written and not written <= row["bytes_to_client"] < written + 4:  # padding is written, too
            yield "%s: call %d: %d bytes were moved, the reply says %d" % (path, row["number"], row["bytes_to_client"], written)
        if row["bytes_from_client"] != row["asked_bytes_from_client"]:
            yield "%s: call %d: %d of %d bytes were read" % (path, row["number"], row["bytes_from_client"], row["asked_bytes_from_client"])


# --- SCSI: iSER and SRP -----------------------------------------------------------------------------------------------------------------
STATUS = {"GOOD": 0, "CHECK CONDITION": 2}


def iser_tag(v):
    """The initiator has its tag in the order of its CPU; here it is as on the wire."""
    return int.from_bytes(v["itt"].to_bytes(4, "big"), "little")


def same_scsi(row, seen, tag_of):
    """Whether our row is the SCSI command that the target's kernel saw: unit, tag, bytes, CDB, status and sense data."""
    lun, tag, _name, length, cdb, status = seen
    v = row["values"]
    if "cdb" not in v or (v["lun"], tag_of(v), v["cdb"]) != (int(lun), int(tag, 0), cdb):
        return False
    word, sense = re.match(r"([A-Z ]+), sense \d+ bytes:?(.*)", status).groups()
    b = bytes.fromhex(sense.replace(" ", ""))
    found = (b[2] & 15, b[12], b[13]) if b else (None, None, None)
    return (row["asked_bytes_to_client"] + row["asked_bytes_from_client"], v["scsi_status"], v["sense_key"], v["asc"], v["ascq"]) == (int(length), STATUS[word], *found)


def scsi(path, rows, tag_of):
    """What is wrong: each row of the target's kernel must be one of ours, in their order, and no other SCSI command be there."""
    seen, at = witnesses(path, 1)["kernel-B"], 0
    for n, row in enumerate(seen):
        place = next((i for i in range(at, len(rows)) if same_scsi(rows[i], row, tag_of)), None)
        if place is None:
            yield "%s: row %d of the kernel is not in the output, or not in its place: %s" % (path, n, row)
        else:
            at = place + 1
    ours = [row for row in rows if "cdb" in row["values"]]
    if len(ours) != len(seen):
        yield "%s: %d SCSI commands, the kernel saw %d" % (path, len(ours), len(seen))
    for row in rows:
        moved, asked = row["bytes_to_client"] + row["bytes_from_client"], row["asked_bytes_to_client"] + row["asked_bytes_from_client"]
        if not row["response_frame"] or (not row["failed"] and moved + (row["values"].get("residual") or 0) < asked):
            yield "%s: command %d moved %d of %d bytes, response in frame %s" % (path, row["number"], moved, asked, row["response_frame"])


def iser(path, rows):
    names = [row["name"] for row in rows if "cdb" not in row["values"]]
    if names != ["Login", "Text", "Login", "NOP-Out", "Logout"]:
        yield "%s: beside SCSI commands: %s" % (path, names)
    yield from scsi(path, rows, iser_tag)


def srp_tag(v):
    """Likewise, of eight bytes."""
    return int.from_bytes(v["tag"].to_bytes(8, "big"), "little")


def srp(path, rows):
    if any("cdb" not in row["values"] for row in rows):
        yield "%s: beside SCSI commands: %s" % (path, [row["name"] for row in rows])
    yield from scsi(path, rows, srp_tag)


# --- SMB Direct -------------------------------------------------------------------------------------------------------------------------
SMB2 = {"Negotiate Protocol": "Negotiate", "GetInfo": "Query Info", "SetInfo": "Set Info", "Find": "Query Directory", "Session Logoff": "Logoff"}


def smb_rows(path):
    """The requests and responses of tshark's lines: frame, kind, command, error."""
    for column in open(path.replace(".pcap", ".expect.tsv"), encoding="utf-8").read().split("\n"):
        found = re.match(r"tshark\tframe (\d+)\t\S+ SMB2\t([\w ]+?) (Request|Response)(?:, Error: (\w+))?", column)
        if found:
            yield int(found[1]), found[3], SMB2.get(found[2], found[2]), found[4]


def smb(path, rows):
    """What is wrong: no kernel witnessed, so each of tshark's lines about SMB2 must be the request or the response of one of our rows."""
    seen = list(smb_rows(path))
    if len(seen) < 10:
        yield "%s: few rows" % path
    for frame, kind, name, error in seen:
        row = next((r for r in rows if r["command_frame" if kind == "Request" else "response_frame"] == frame), None)
        if row is None or row["name"] != name or (error and row["status"] != error) or (kind == "Response" and not error and row["failed"]):
            yield "%s: frame %d is no %s of %s, %s: %s" % (path, frame, kind, name, error, row)
    if len(rows) != sum(kind == "Request" for _, kind, _, _ in seen) + 1 or rows[0]["name"] != "SMBD Negotiate":
        yield "%s: %d rows" % (path, len(rows))


def smb_bytes(path, rows):
    """What is wrong: READ and WRITE moved as many bytes as their responses state."""
    for row in rows:
        moved = row["bytes_to_client"] + row["bytes_from_client"]
        if row["values"]["moved"] is not None and moved != row["values"]["moved"]:
            yield "%s: %s moved %d bytes, the response says %d" % (path, row["command"], moved, row["values"]["moved"])
    if sum(row["bytes_to_client"] + row["bytes_from_client"] for row in rows) != 200011:
        yield "%s: not the bytes of the files" % path
    left = [row["values"]["messages_left"] for row in rows[1:]]  # of 255 credits
    if None in left or not 0 < min(left) <= max(left) < 255:
        yield "%s: credits of SMB Direct: %s" % (path, left)


# --- SMC-R ------------------------------------------------------------------------------------------------------------------------------
def smc(path, rows):
    """What is wrong: no kernel witnessed; the bytes written are those by which the cursors in the CDC messages moved."""
    data = [(r["bytes_from_client"], r["asked_bytes_from_client"], r["values"]["cursor_wrap"], r["values"]["cursor"]) for r in rows if r["name"] == "Data"]
    blocked = [r["values"]["write_blocked"] for r in rows if r["name"] == "Data"]
    if data != [(5, 5, 0, 5), (65531, 65531, 1, 0), (5, 5, 1, 5)] or blocked != [0, 1, 0]:  # the ring is full behind the second
        yield "%s: data %s" % (path, data)
    llc = [(r["name"], r["status"], r["command_frame"], r["response_frame"]) for r in rows if r["name"] != "Data"]
    if llc != [("Confirm Link (v2)", "answered", 11, 13), ("Add Link (v2)", "refused", 15, 17), ("Delete RKey (v2)", "answered", 105, 109), ("Delete RKey (v2)", "answered", 106, 110)]:
        yield "%s: LLC %s" % (path, llc)


# --- RTRS -------------------------------------------------------------------------------------------------------------------------------
def rnbd(path, rows):
    """What is wrong: no kernel witnessed; each command of the tools that reached the server must be there: open, dd to and from the device, an
    open that failed with the error that the client's kernel printed, close."""
    seen = open(path.replace(".pcap", ".expect.tsv"), encoding="utf-8").read()
    wanted = [("Open", None, 0, 0)]
    for line in seen.splitlines():
        dd = re.match(r"tool-A\tcommand\tdd if=(\S+) of=(\S+) bs=(\d+) count=1 ?(?:(?:seek|skip)=(\d+) )?", line)
        if dd:
            write, size = dd[2] == "/dev/rnbd0", int(dd[3])
            wanted.append(("Write" if write else "Read", int(dd[4] or 0) * size // 512, size, 0))
    error = re.search(r"Opening failed, server responded: -(\d+)", seen)
    wanted += [("Open", None, 0, int(error[1])), ("Close", None, 0, 0)]
    at = 0
    for name, sector, size, error in wanted:
        place = next((i for i in range(at, len(rows)) if rows[i]["name"] == name and rows[i]["values"]["sector"] == sector
                      and rows[i]["values"]["error"] == error and (rows[i]["values"]["size"] or 0) >= size), None)
        if place is None:
            yield "%s: %s is not in the output, or not in its place" % (path, (name, sector, size, error))
        else:
            at = place + 1
    for row in rows:
        moved, asked = row["bytes_to_client"] + row["bytes_from_client"], row["asked_bytes_to_client"] + row["asked_bytes_from_client"]
        if not row["response_frame"] or (not row["failed"] and (moved != asked or moved != (row["values"]["size"] or moved))):
            yield "%s: command %d moved %d of %d bytes" % (path, row["number"], moved, asked)


# --- rping ------------------------------------------------------------------------------------------------------------------------------
def rping(path, rows):
    """What is wrong: each ping of the program is memory that was read, whole, and then memory that was written."""
    told = [line for line in open(path.replace(".pcap", ".expect.tsv"), encoding="utf-8") if line.startswith("tool\t\tping data")]
    names = [row["name"] for row in rows]
    if names != ["Read", "Write"] * len(told) or not told:
        yield "%s: %s, the program told of %d pings" % (path, names, len(told))
    for row in rows:
        moved = row["bytes_to_client"] if row["name"] == "Write" else row["bytes_from_client"]
        if moved != row["values"]["length"] or not row["response_frame"]:
            yield "%s: command %d moved %d bytes" % (path, row["number"], moved)
    lines = [line.split("\t") for line in open(path.replace(".pcap", ".expect.tsv"), encoding="utf-8") if line.startswith("tshark\t")]
    frames = {int(column[1].split()[1]) for column in lines if " MPA" not in column[2]}
    ours = {row[key] for row in rows for key in ("command_frame", "data_first_frame", "data_last_frame", "response_frame")}
    if frames - ours:
        yield "%s: frames %s are of no command" % (path, sorted(frames - ours))
