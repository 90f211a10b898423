"""Names, numbers, addresses and identifiers that fill the slots of events and records."""

from __future__ import annotations

import random

VALUE_SLOTS = (
    "ip",
    "ip2",
    "id",
    "mail",
    "host",
    "pkg",
    "hex",
    "hex2",
    "mac",
    "num",
    "path",
    "port",
    "pid",
    "ver",
    "amt",
)
"""Slots whose values can single out a line."""
SERVICES = [
    "nginx",
    "sshd",
    "kernel",
    "systemd",
    "cron",
    "postgres",
    "redis",
    "dockerd",
    "kubelet",
    "auth-service",
    "billing",
    "api-gateway",
    "scheduler",
    "mailer",
    "worker",
    "payment-svc",
    "inventory",
    "search-indexer",
    "cache-proxy",
    "NetworkManager",
    "bluetoothd",
    "cupsd",
    "dbus-daemon",
    "rsyslogd",
    "mysqld",
    "haproxy",
    "consul",
    "vault",
    "etcd",
    "prometheus",
    "grafana",
    "node-exporter",
    "fluentd",
    "jenkins",
    "gitea",
    "postfix",
    "dovecot",
    "named",
    "chronyd",
    "udevd",
]
PEOPLE = [
    "alice",
    "bob",
    "carol",
    "david",
    "emma",
    "frank",
    "grace",
    "hugo",
    "ivan",
    "julia",
    "karim",
    "lena",
    "marco",
    "nina",
    "oscar",
    "paula",
    "quentin",
    "rosa",
    "sven",
    "tara",
    "umar",
    "vera",
    "will",
    "xenia",
    "yusuf",
    "zoe",
    "ahmed",
    "bea",
    "chen",
    "dora",
    "elif",
    "femi",
    "gita",
    "hana",
    "igor",
    "jonas",
    "admin",
    "root",
    "deploy",
    "backup",
    "guest",
    "jenkins",
]
SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "da",
    "de",
    "di",
    "du",
    "fa",
    "fi",
    "ga",
    "go",
    "ka",
    "ke",
    "ko",
    "la",
    "le",
    "li",
    "lo",
    "ma",
    "me",
    "mi",
    "mo",
    "na",
    "ne",
    "ni",
    "no",
    "pa",
    "pe",
    "ra",
    "re",
    "ri",
    "ro",
    "sa",
    "se",
    "si",
    "so",
    "ta",
    "te",
    "ti",
    "to",
    "va",
    "vi",
    "za",
    "zu",
]
EXTENSIONS = ["pdf", "png", "txt", "zip", "csv", "docx", "mp4", "json", "xml", "log", "sql", "tar.gz"]


class Values:
    """Draws values for slots; ``words`` are the ordinary words identifiers are made of."""

    def __init__(self, rng: random.Random, words: list[str]) -> None:
        self.rng, self.words = rng, words

    def word(self) -> str:
        r = self.rng
        if self.words and r.random() < 0.8:
            return r.choice(self.words).lower()
        return "".join(r.choice(SYLLABLES) for _ in range(r.randint(2, 4)))

    def hex(self, digits: int) -> str:
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def ip(self) -> str:
        r = self.rng
        head = r.choice(("10.0.0", "192.168.1", "172.16.4", None, None))
        tail = ".".join(str(r.randint(1, 254)) for _ in range(1 if head else 4))
        return f"{head}.{tail}" if head else tail

    def identifier(self) -> str:
        r = self.rng
        return r.choice(
            (str(r.randint(100, 999_999)), self.hex(8), f"{self.word()[:4]}-{r.randint(1, 9999)}", self.hex(12).upper())
        )

    def path(self) -> str:
        r = self.rng
        root = r.choice(
            ("/var/log/", "/etc/", "/home/", "/mnt/", "/srv/data/", "/usr/share/", "/opt/", "C:\\Data\\", "/tmp/")
        )
        return (
            root
            + self.word()
            + r.choice(("", ".conf", ".db", f"/{self.word()}", f"/{self.word()}.yaml", f"{r.randint(1, 99)}.log"))
        )

    def draw(self) -> dict[str, str]:
        r, w = self.rng, self.word
        version = lambda: f"{r.randint(0, 12)}.{r.randint(0, 30)}.{r.randint(0, 40)}"  # noqa: E731
        return {
            "ip": self.ip(),
            "ip2": self.ip(),
            "port": str(r.randint(20, 65000)),
            "port2": str(r.choice((22, 80, 443, 3306, 8080, r.randint(20, 65000)))),
            "user": r.choice(PEOPLE) + r.choice(("", "", str(r.randint(1, 99)), f".{w()}")),
            "n": str(r.randint(1, 99)),
            "n2": str(r.randint(1, 200)),
            "n3": str(r.randint(2, 120)),
            "num": str(r.randint(1000, 9_999_999)),
            "num2": str(r.randint(1000, 9_999_999)),
            "ms": str(r.randint(1, 30000)),
            "pct": str(r.randint(1, 100)),
            "mb": str(r.randint(1, 9000)),
            "gb": str(r.randint(1, 900)),
            "kb": str(r.randint(10_000, 9_000_000)),
            "kb2": str(r.randint(10_000, 9_000_000)),
            "pid": str(r.randint(100, 65_000)),
            "amt": f"{r.randint(1, 999)}.{r.randint(0, 99):02d}",
            "id": self.identifier(),
            "hex": self.hex(r.choice((8, 10, 12))),
            "hex2": self.hex(12),
            "hex3": self.hex(12),
            "mac": ":".join(self.hex(2) for _ in range(6)),
            "word": w(),
            "word2": w(),
            "ns": r.choice(("default", "kube-system", "prod", "staging", w())),
            "proc": r.choice((w(), r.choice(SERVICES))),
            "svc": r.choice(SERVICES),
            "host": w()
            + r.choice(("", str(r.randint(1, 40))))
            + r.choice((".example.com", ".local", ".internal", ".net")),
            "mail": f"{r.choice(PEOPLE)}@{w()}.{r.choice(('com', 'org', 'net', 'io'))}",
            "pkg": r.choice(("lib", "python3-", "", "")) + w(),
            "ver": version(),
            "ver2": version(),
            "ext": r.choice(EXTENSIONS),
            "disk": r.choice(("sda", "sdb", "sdc1", "nvme0n1", "nvme1n1p2", "vda", "dm-3")),
            "nic": r.choice(("eth0", "eth1", "enp3s0", "ens18", "wlan0", "br-lan")),
            "cls": w().capitalize(),
            "cls2": w().capitalize(),
            "path": self.path(),
            "date": f"20{r.randint(24, 29)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}",
        }

    def nudge(self, value: str) -> str:
        """The same value with one digit changed, or another word when it has none."""
        digits = [i for i, c in enumerate(value) if c.isdigit()]
        if not digits:
            return self.word()
        at = self.rng.choice(digits)
        return value[:at] + self.rng.choice([d for d in "123456789" if d != value[at]]) + value[at + 1 :]
