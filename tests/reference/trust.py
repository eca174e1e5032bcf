"""Signatures and trust (trust). `ssh-keygen` does the cryptography."""
import base64, os, re, subprocess, sys, tempfile, time
from functools import partial

from encoding import Cursor, need

# The fields of a policy, each a list of strings: the lines of two files, and words as in a vector's header.
POLICY = "trust", "revoked", "threshold", "now", "compatible", "floor", "allow-unsigned"

ALGORITHMS = {b"ssh-rsa": (b"rsa-sha2-256", b"rsa-sha2-512")} | {key: (key,) for key in (
    b"ssh-ed25519", b"sk-ssh-ed25519@openssh.com",
    b"ecdsa-sha2-nistp256", b"sk-ecdsa-sha2-nistp256@openssh.com")}
PRIME, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
EIGHTH = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826
SMALL = 0, 1, PRIME - 1, EIGHTH, PRIME - EIGHTH  # the y of all points of small order
CURVE_D = -121665 * pow(121666, -1, PRIME) % PRIME
P256_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
P256_B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b

def is_shortest(mpint):
    """Check whether a positive mpint is in its only form (trust, appendix A.1)."""
    return mpint[:1] < b"\x80" and mpint[:1] != b"" and (mpint[0] > 0 or mpint[1:2] >= b"\x80")

def check_point(data):
    """Reject bytes that are not a point of Ed25519 in its canonical form, or a point of small order (trust 4)."""
    y = int.from_bytes(data, "little") & 2**255 - 1
    need(len(data) == 32 and y < PRIME and y not in SMALL, "signature", "a point of small order or not canonical")
    # Its x is a root of (y^2 - 1) / (d y^2 + 1).
    root = pow((y * y - 1) * (CURVE_D * y * y + 1), (PRIME - 1) // 2, PRIME)
    need(root == 1, "signature", "no point of the curve")

def check_p256_point(data):
    """Reject bytes that are not an uncompressed point of NIST P-256 (trust 4)."""
    x, y = int.from_bytes(data[1:33]), int.from_bytes(data[33:])
    good = len(data) == 65 and data[0] == 4 and max(x, y) < P256_PRIME and (y * y - x**3 + 3 * x - P256_B) % P256_PRIME == 0
    need(good, "signature", "no uncompressed point of P-256")

def parse_sshsig(body, purpose="sealift"):
    """Return the public key of an SSHSIG, after rejecting what ssh-keygen would accept, or None if it is unknown (trust 3)."""
    sshsig = Cursor(body, "signature", ">")
    need(sshsig.read("6sI") == (b"SSHSIG", 1), "signature", "not an SSHSIG of version 1")
    public, namespace, reserved, digest, signature = (sshsig.string("I") for _ in range(5))
    sshsig.end()
    need((namespace, reserved) == (purpose.encode(), b""), "signature", "another namespace, or reserved is used")
    key, signature = Cursor(public, "signature", ">"), Cursor(signature, "signature", ">")
    kind, algorithm, raw = key.string("I"), signature.string("I"), signature.string("I")
    if kind not in ALGORITHMS:
        return None
    # A key of a known type is judged, whatever the algorithms are.
    if b"ssh-ed25519" in kind:
        point = key.string("I")
    elif kind != b"ssh-rsa":
        need(key.string("I") == b"nistp256", "signature", "another curve")
        point = key.string("I")
    else:
        numbers = key.string("I"), key.string("I")
    if kind.startswith(b"sk-"):
        key.string("I")
    key.end()
    if kind == b"ssh-rsa":
        modulus = int.from_bytes(numbers[1], "big")
        # ssh-keygen accepts leading zero bytes, with which one key would have several blobs.
        need(all(map(is_shortest, numbers)), "signature", "a number that is not in its shortest form")
        if not 3072 <= modulus.bit_length() <= 16384:
            return None
        exponent = int.from_bytes(numbers[0], "big")
        need(2 < exponent < 1 << 32 and exponent & modulus & 1, "signature", "an exponent or modulus that is even or out of its range")
    else:
        (check_point if b"ssh-ed25519" in kind else check_p256_point)(point)
    if digest not in (b"sha256", b"sha512") or algorithm not in ALGORITHMS[kind]:
        return None
    # ssh-keygen also accepts other forms of a signature.
    if kind == b"ssh-rsa":
        need(len(raw) == -(-modulus.bit_length() // 8), "signature", "an RSA signature of another length")
    if b"ecdsa" in kind:
        numbers = Cursor(raw, "signature", ">")
        need(all(is_shortest(numbers.string("I")) for _ in "rs"), "signature", "a number that is not in its shortest form")
    if kind.startswith(b"sk-"):
        need(signature.int("B") & 1, "signature", "the user was not present")
    if b"ssh-ed25519" in kind:
        need(int.from_bytes(raw[32:], "little") < ORDER, "signature", "an S that is not canonical")
        check_point(raw[:32])
    return public

def ssh_keygen(signed, body, purpose, *arguments, **files):
    """Check whether `ssh-keygen -Y` accepts a signature; `files` are written beside it under their names."""
    armour = b"-----BEGIN SSH SIGNATURE-----\n%s-----END SSH SIGNATURE-----\n" % base64.encodebytes(body)
    with tempfile.TemporaryDirectory() as directory:
        for name, content in (files | {"sig": armour}).items():
            with open(os.path.join(directory, name), "wb") as file:
                file.write(content)
        command = ["ssh-keygen", "-Y", *arguments, "-n", purpose, "-s", "sig"]
        utc = os.environ | {"TZ": "UTC"}
        run = subprocess.run(command, input=signed, cwd=directory, env=utc, capture_output=True)
        return run.returncode == 0

def granting(line):
    """Check whether an allowed_signers line has the option `namespaces`, which ssh-keygen does not require (trust 5)."""
    return re.match(r'\s*\S+\s+(\S+,)?namespaces=', re.sub(r'"(\\.|[^"])*"', '""', line), re.I)

def for_purpose(purpose, line):
    """Let a line for bundles be one for lists as well (channel 4)."""
    def widened(found):
        patterns = found[2].split(",")
        def matches(pattern):
            return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), "sealift")
        good = any(map(matches, patterns)) and not any(matches(one[1:]) for one in patterns if one[:1] == "!")
        return f'{found[1]}"{purpose if good else found[2]}"'
    return line if purpose == "sealift" else re.sub(r'(namespaces=)"([^"]*)"', widened, line, count=1, flags=re.I)

SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")

def der(tag, data):
    """Return the content of a value with this tag, if it is all of the data and its length is in the shortest form (kernel-signatures 3)."""
    for at in range(2, min(4, len(data)) + 1):
        size = len(data) - at
        long = bytes([0x81, size]) if size < 0x100 else b"\x82" + size.to_bytes(2, "big")
        if data[:at] == bytes([tag]) + (bytes([size]) if size < 0x80 else long):
            return data[at:]
    need(False, "signature", "no PKCS#7 signature in DER")

def check_kernel_signatures(bodies):
    """Check that there is at most one kernel signature, of the required form (kernel-signatures 3)."""
    need(len(bodies) <= 1, "signature", "several signatures for the kernel")
    for body in bodies:
        need(len(body) <= 16128, "signature", "a signature that is too long for the kernel")
        info = der(0x30, body)
        need(info.startswith(SIGNED_DATA), "signature", "no PKCS#7 signature")
        der(0x30, der(0xa0, info[len(SIGNED_DATA):]))
        print("note: a signature for the kernel, which counts for nothing here", file=sys.stderr)

def check_signatures(signed, envelopes, purpose="sealift"):
    """Return the (public key, body) of each signature that is not unknown, all of which verify: 1 of the list in trust 7."""
    check_kernel_signatures([body for kind, body in envelopes if kind == 2])
    need(sum(kind == 1 for kind, _ in envelopes) <= 64, "signature", "more than 64 signatures")
    keys = []
    for body in (body for kind, body in envelopes if kind == 1):
        if (key := parse_sshsig(body, purpose)) is None:
            print("note: a signature of an unknown kind, which does not count", file=sys.stderr)
            continue
        keys.append((key, body))
        need(ssh_keygen(signed, body, purpose, "check-novalidate"), "signature", "a signature does not verify")
    for kind, _ in envelopes:
        if kind not in (1, 2):
            print(f"note: an envelope of the unknown kind {kind}", file=sys.stderr)
    return keys

def judge(root, signed, keys, policy, purpose="sealift"):
    """Check whether the policy trusts the bundle: 2 to 5 of the list in trust 7."""
    given = dict(threshold=["1"], floor=["0"], now=[time.time()]) | policy
    threshold, floor, now = (int(given[key][0]) for key in ("threshold", "floor", "now"))
    granting_lines = map(partial(for_purpose, purpose), filter(granting, given.get("trust", ())))
    files = {"trust": granting_lines, "revoked": given.get("revoked", ())}
    files = {name: "\n".join(lines).encode("latin-1") for name, lines in files.items()}
    verify = ["verify", "-I", root.name.decode(), "-f", "trust",
              "-O", time.strftime("verify-time=%Y%m%d%H%M%S", time.gmtime(now))]

    def taken(*options):
        return len({key for key, body in keys if ssh_keygen(signed, body, purpose, *verify, *options, **files)})

    granted, good = taken(), taken("-r", "revoked")
    if "yes" in given.get("allow-unsigned", ()) and good < threshold:
        print("note: taken without the signatures that it needs, by explicit wish", file=sys.stderr)
    else:
        need(granted >= threshold, "untrusted", f"{granted} trusted keys of {threshold}")
        need(good >= threshold, "revoked", f"{good} unrevoked keys of {threshold}")
    tags = {tag.encode() for tag in given.get("compatible", ())} & set(root.tags)
    need(tags or not root.tags, "incompatible", "the device has none of the bundle's tags")
    need(root.expires == 0 or now < root.expires, "expired", "the bundle has expired")
    need(root.version >= floor, "downgrade", f"version {root.version} is below {floor}")
