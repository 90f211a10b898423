"""Runs nginx, PostgreSQL, Redis and OpenSSH on loopback, gives each an eventful hour in two minutes, keeps their logs.

    python make.py DIRECTORY

Runs as root on Debian with the packages nginx-light, postgresql-15, redis-server and openssh-server.

The committed logs came from one run of this script (and dpkg.log from installing the packages); the questions in
questions.json were written by hand against exactly those files, so a new run needs new questions.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HOST = "127.0.0.1"
RNG = random.Random(20)
PAGES = [
    "/",
    "/index.html",
    "/about",
    "/pricing",
    "/docs/install",
    "/docs/api/users",
    "/blog/2026/10/release-notes",
    "/assets/app.css",
    "/assets/app.js",
    "/assets/logo.svg",
    "/favicon.ico",
    "/api/orders?page=2",
    "/api/orders/8841",
    "/api/cart",
    "/login",
    "/search?q=red+kettle",
]
BROWSERS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5"
    " Mobile/15E148 Safari/604.1",
    "curl/7.88.1",
    "Wget/1.21.3",
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, seconds: float = 20) -> None:
    end = time.time() + seconds
    while time.time() < end:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing answers on port {port} after {seconds} s")


def nginx(out: Path) -> None:
    """A small shop behind nginx: pages, an API whose backend dies and returns, odd clients."""
    root, port, backend = Path("/srv/shop"), free_port(), free_port()
    for page in (
        "index.html",
        "about",
        "pricing",
        "login",
        "docs/install",
        "assets/app.css",
        "assets/app.js",
        "assets/logo.svg",
    ):
        file = root / page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x" * RNG.randint(400, 9000))
    (root / "private").mkdir(exist_ok=True)
    (root / "private/ledger.csv").write_text("secret")
    (root / "private/ledger.csv").chmod(0)
    access, error = out / "nginx-access.log", out / "nginx-error.log"
    config = out / "nginx.conf"
    config.write_text(f"""user www-data; worker_processes 1; daemon off; pid {out}/nginx.pid; error_log {error} notice;
events {{ worker_connections 64; }}
http {{ access_log {access} combined; client_max_body_size 20k; limit_req_zone $request_uri zone=login:1m rate=3r/s;
server {{ listen {HOST}:{port}; server_name shop.example; root {root}; location /private/ {{ autoindex off; }}
location = /login {{ limit_req zone=login burst=2 nodelay; }} location /admin {{ deny all; }}
location /api/ {{ proxy_pass http://{HOST}:{backend}; proxy_connect_timeout 1s; proxy_read_timeout 1s; }} }} }}""")
    server = subprocess.Popen(["nginx", "-c", str(config)])
    wait_for(port)

    def api(answering: threading.Event, stop: threading.Event) -> None:
        with socket.create_server((HOST, backend)) as listener:
            listener.settimeout(0.2)
            while not stop.is_set():
                try:
                    client, _ = listener.accept()
                except TimeoutError:
                    continue
                with client:
                    data = client.recv(4096)
                    if not answering.is_set():
                        time.sleep(1.3)
                    body = b'{"ok": true}' * RNG.randint(1, 60)
                    status = b"404 Not Found" if b"/api/orders/999" in data else b"200 OK"
                    try:
                        client.sendall(
                            b"HTTP/1.1 "
                            + status
                            + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
                            + body
                        )
                    except OSError:
                        continue

    def get(
        path: str, method: str = "GET", body: bytes | None = None, agent: str | None = None, referer: str = ""
    ) -> None:
        client = http.client.HTTPConnection(HOST, port, timeout=8)
        headers = {"Host": "shop.example", "User-Agent": agent or RNG.choice(BROWSERS)}
        if referer:
            headers["Referer"] = referer
        try:
            client.request(method, path, body, headers)
            client.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            client.close()

    answering, stop = threading.Event(), threading.Event()
    answering.set()
    thread = threading.Thread(target=api, args=(answering, stop))
    thread.start()

    def browse(n: int) -> None:
        for _ in range(n):
            page = RNG.choice(PAGES)
            get(page, referer=RNG.choice(["", f"http://shop.example{RNG.choice(PAGES)}"]))
            time.sleep(RNG.choice([0, 0, 0.02, 0.08]))

    browse(360)
    get("/private/ledger.csv", agent=BROWSERS[0])
    get("/admin/users", agent="sqlmap/1.7.2#stable (https://sqlmap.org)")
    get("/wp-login.php", "POST", b"log=admin&pwd=admin", "python-requests/2.31.0")
    browse(160)
    get("/api/upload", "POST", b"z" * 30_000, BROWSERS[2])
    get("/api/orders/999", agent=BROWSERS[1])
    for _ in range(14):
        get("/login", "GET", agent="Go-http-client/1.1")
    browse(200)
    answering.clear()
    get("/api/cart", agent=BROWSERS[2])
    answering.set()
    browse(140)
    stop.set()
    thread.join()
    for path in ("/api/orders/8841", "/api/cart", "/api/orders?page=2"):
        get(path, agent=BROWSERS[1])
    browse(60)
    stop.clear()
    thread = threading.Thread(target=api, args=(answering, stop))
    thread.start()
    time.sleep(0.5)
    get("/../../etc/passwd", agent="curl/7.88.1")
    get("/about", "DELETE", agent="PostmanRuntime/7.39.0")
    get("/robots.txt", agent="Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")
    with socket.create_connection((HOST, port)) as raw:
        raw.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        raw.recv(300)
    get("/" + "a" * 9000)
    browse(170)
    stop.set()
    thread.join()
    server.terminate()
    server.wait()


def postgres(out: Path) -> None:
    """A database that sees wrong passwords, deadlocks, a full connection table, a crash and its recovery."""
    binaries, port = Path("/usr/lib/postgresql/15/bin"), free_port()
    data, log = Path("/var/lib/postgresql/shop"), out / "postgresql.log"
    shutil.rmtree(data, ignore_errors=True)
    user = ["runuser", "-u", "postgres", "--"]
    subprocess.run(
        [*user, binaries / "initdb", "-D", data, "-A", "trust", "--no-sync"], check=True, stdout=subprocess.DEVNULL
    )
    with open(data / "postgresql.conf", "a") as config:
        config.write(
            "log_connections=on\nlog_disconnections=on\nlog_line_prefix='%m [%p] %q%u@%d '\n"
            "log_min_duration_statement=120\nlog_lock_waits=on\n"
            "deadlock_timeout=300ms\ncheckpoint_timeout=30s\nlog_autovacuum_min_duration=0\nautovacuum_naptime=4s\n"
            "max_connections=24\nlog_temp_files=0\nwork_mem=64kB\nfsync=off\n"
        )
    (data / "pg_hba.conf").write_text(
        "local all postgres trust\nlocal all intern reject\nlocal all web scram-sha-256\nlocal all all trust\n"
    )
    error = open(log, "ab")  # noqa: SIM115
    sockets = out / "sockets"
    sockets.mkdir(exist_ok=True)
    shutil.chown(sockets, "postgres")
    server = subprocess.Popen(
        [*user, binaries / "postgres", "-D", data, "-p", str(port), "-k", sockets, "-h", HOST],
        stderr=error,
        stdout=error,
    )
    wait_for(port)

    def sql(
        text: str, who: str = "postgres", database: str = "shop", wait: bool = True, password: str = ""
    ) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [binaries / "psql", "-h", sockets, "-p", str(port), "-U", who, "-d", database, "-qX", "-c", text],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PGPASSWORD": password},
        )
        if wait:
            started.wait()
        return started

    sql("CREATE DATABASE shop", database="postgres")
    sql(
        "CREATE ROLE web LOGIN PASSWORD 'w3b'; CREATE ROLE intern LOGIN; CREATE ROLE report LOGIN; "
        "CREATE TABLE customers(id serial primary key, email text unique);"
        "CREATE TABLE orders(id serial primary key, customer int references customers, "
        "total numeric check (total >= 0), placed date);"
        "INSERT INTO customers(email) SELECT 'user' || n || '@shop.example' FROM generate_series(1,20000) n;"
        "INSERT INTO orders(customer,total,placed) SELECT 1 + n % 20000, n % 90, "
        "'2026-01-01' FROM generate_series(1,60000) n;"
        "GRANT SELECT ON customers TO report; GRANT ALL ON ALL TABLES IN SCHEMA public TO web; "
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO web"
    )
    ordinary = [
        "SELECT count(*) FROM orders",
        "SELECT * FROM customers ORDER BY email DESC LIMIT 5",
        "UPDATE orders SET total = total + 1 WHERE id = 17",
        "INSERT INTO orders(customer,total,placed) VALUES (12, 40, now())",
        "SELECT pg_sleep(0.15)",
    ]

    def work(n: int) -> None:
        for _ in range(n):
            sql(RNG.choice(ordinary), RNG.choice(["web", "postgres", "report"]), password="w3b")

    work(60)
    for text, who in (
        ("SELEC * FROM orders", "web"),
        ("INSERT INTO customers(email) VALUES ('user7@shop.example')", "web"),
        ("SELECT * FROM invoices", "report"),
        ("DELETE FROM customers WHERE id = 13", "web"),
        ("UPDATE orders SET total = -5 WHERE id = 3", "web"),
    ):
        sql(text, who, password="w3b")
        work(12)
    sql("SELECT 1", "intern")
    sql("SELECT 1", "web", password="letmein")
    sql("SELECT total / (id - id) FROM orders", password="")
    sql("SELECT * FROM orders", "report")
    sql("SELECT 1", "nobody_here")
    sql("SELECT 1", database="warehouse")
    work(20)
    one = sql(
        "BEGIN; UPDATE customers SET email = email || '1' WHERE id = 1; SELECT pg_sleep(0.6); "
        "UPDATE customers SET email = email || '1' WHERE id = 2; COMMIT",
        wait=False,
    )
    two = sql(
        "BEGIN; UPDATE customers SET email = email || '2' WHERE id = 2; SELECT pg_sleep(0.6); "
        "UPDATE customers SET email = email || '2' WHERE id = 1; COMMIT",
        wait=False,
    )
    one.wait()
    two.wait()
    sql("SET statement_timeout = '200ms'; SELECT pg_sleep(5)")
    work(15)
    crowd = [sql("SELECT pg_sleep(4)", "report", wait=False) for _ in range(30)]
    time.sleep(2)
    for waiting in crowd:
        waiting.wait()
    sql("SELECT * FROM orders a JOIN orders b ON a.customer = b.customer ORDER BY a.total, b.placed LIMIT 1")
    sql("SELECT 'abc'::int")
    sql("CREATE INDEX ON orders(placed); VACUUM ANALYZE orders")
    sql("SELECT * FROM customers WHERE email LIKE '%7@%' AND pg_sleep(0.001) IS NOT NULL LIMIT 90")
    work(15)
    victim = sql("SELECT pg_sleep(30)", "report", wait=False)
    time.sleep(0.5)
    pid = subprocess.run(
        [
            binaries / "psql",
            "-h",
            sockets,
            "-p",
            str(port),
            "-U",
            "postgres",
            "-d",
            "shop",
            "-Atc",
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30)%'",
        ],
        capture_output=True,
        text=True,
    ).stdout.split()
    os.kill(int(pid[0]), 9)  # a backend killed from outside: the whole server recovers
    victim.wait()
    time.sleep(4)
    work(20)
    sql("SELECT pg_reload_conf()")
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'report'")
    with open(data / "postgresql.conf", "a") as config:
        config.write("shared_buffers=256MB\nwork_mem=1MB\n")
    sql("SELECT pg_reload_conf()")
    work(25)
    time.sleep(31)
    subprocess.run([*user, binaries / "pg_ctl", "stop", "-D", data, "-m", "fast"], stdout=subprocess.DEVNULL)
    server.wait()
    error.close()
    shutil.rmtree(sockets, ignore_errors=True)


def redis(out: Path) -> None:
    """A cache that loads, saves, runs a replica, reaches its memory limit and refuses writes."""
    port, second, log = free_port(), free_port(), out / "redis.log"
    folder = Path("/var/lib/redis/shop")
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    base = [
        "--bind",
        HOST,
        "--loglevel",
        "verbose",
        "--logfile",
        str(log),
        "--save",
        "5",
        "50",
        "--latency-tracking",
        "no",
    ]

    def cli(*words: str, at: int = 0) -> None:
        subprocess.run(
            ["redis-cli", "-h", HOST, "-p", str(at or port), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
        )

    for round_ in range(2):
        server = subprocess.Popen(
            [
                "redis-server",
                *base,
                "--port",
                str(port),
                "--dir",
                str(folder / "a"),
                "--maxmemory",
                "12mb",
                "--timeout",
                "2",
            ]
        )
        wait_for(port)
        for i in range(120):
            cli("SET", f"cart:{round_}:{i}", "x" * RNG.randint(10, 900))
        cli("DEBUG", "SLEEP", "0.3")
        replica = subprocess.Popen(
            ["redis-server", *base, "--port", str(second), "--dir", str(folder / "b"), "--replicaof", HOST, str(port)]
        )
        wait_for(second)
        time.sleep(3)
        cli("SET", "read-only?", "yes", at=second)
        cli("BGREWRITEAOF")
        cli("CONFIG", "SET", "maxmemory", "2mb")
        cli("EVAL", "for i=1,4000 do redis.call('SET','fill:'..i,string.rep('y',900)) end", "0")
        cli("CONFIG", "SET", "notify-keyspace-events", "KEA")
        for i in range(60):
            cli("GET", f"cart:{i}")
        with socket.create_connection((HOST, port)) as raw:
            raw.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.3)
        time.sleep(4)
        cli("CLIENT", "KILL", "TYPE", "normal")
        time.sleep(8)
        (replica.terminate if round_ else replica.kill)()
        replica.wait()
        time.sleep(2)
        if round_ == 0:
            cli("SHUTDOWN", "NOSAVE")
        else:
            cli("ACL", "SETUSER", "worker", "on", ">pw", "~job:*", "+get")
            server.terminate()
        server.wait()


def sshd(out: Path) -> None:
    """A host that strangers knock at: bad users, wrong keys, too many tries, a good login, loose permissions."""
    port, folder, log = free_port(), out / "ssh", out / "sshd.log"
    folder.mkdir(exist_ok=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    for name, kind in (("host", "ed25519"), ("good", "ed25519"), ("bad", "rsa")):
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", folder / name], check=True)
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", "-p", "*", "deploy"], stderr=subprocess.DEVNULL)
    home = Path("/home/deploy/.ssh")
    home.mkdir(exist_ok=True)
    shutil.copy(folder / "good.pub", home / "authorized_keys")
    shutil.chown(home, "deploy")
    shutil.chown(home / "authorized_keys", "deploy")
    config = folder / "config"
    config.write_text(
        f"Port {port}\nListenAddress {HOST}\nHostKey {folder}/host\nPidFile none\n"
        f"LogLevel VERBOSE\nMaxAuthTries 3\nPermitRootLogin no\nAllowUsers deploy git\n"
        "UseDNS no\nPasswordAuthentication no\nMaxStartups 3:50:6\n"
    )
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", config, "-E", log])
    wait_for(port)

    def ssh(
        who: str, key: str = "bad", *extra: str, command: str = "true", wait: bool = True
    ) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [
                "ssh",
                "-F",
                "none",
                "-p",
                str(port),
                "-i",
                folder / key,
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "BatchMode=yes",
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                "ConnectTimeout=5",
                *extra,
                f"{who}@{HOST}",
                command,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        if wait:
            started.wait()
        return started

    names = ["admin", "test", "oracle", "ubuntu", "pi", "postgres", "guest", "minecraft", "ftpuser", "support"]
    for i in range(120):
        ssh(RNG.choice(names))
        if i == 9:
            ssh("deploy", "good", command="uptime")
        if i == 15:
            ssh("root")
        if i == 21:
            ssh("deploy", "bad")
    ssh("deploy", "good", "-o", "KexAlgorithms=diffie-hellman-group1-sha1")
    ssh("deploy", "good", "-o", "Ciphers=3des-cbc")
    for words in (b"GET / HTTP/1.0\r\n\r\n", b"SSH-1.5-old\r\n", b"\x00\x01\x02garbage\r\n"):
        with socket.create_connection((HOST, port)) as raw:
            raw.sendall(words)
            time.sleep(0.3)
    held = [socket.create_connection((HOST, port)) for _ in range(9)]
    time.sleep(1)
    for raw in held:
        raw.close()
    ssh("git", "good")
    ssh("deploy", "good", "-N", "-L", f"{free_port()}:{HOST}:1", wait=False)
    time.sleep(1)
    ssh("deploy", "good", command="sftp-server --missing")
    (home / "authorized_keys").chmod(0o666)
    home.chmod(0o777)
    ssh("deploy", "good")
    for _ in range(40):
        ssh(RNG.choice(names))
    server.terminate()
    server.wait()
    subprocess.run(["userdel", "-rf", "deploy"], stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[2:] or ["nginx", "postgres", "redis", "sshd"]
    for service in (nginx, postgres, redis, sshd):
        if service.__name__ in chosen:
            service(out)


if __name__ == "__main__":
    main()
