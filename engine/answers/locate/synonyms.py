"""Other words for what logs say: people ask who was turned away, where the log has denied.

Hand-written lists of what is said in either way about computers, for models too small to know it.
"""

from __future__ import annotations

from functools import cache

_GROUPS = """
refuse reject deny decline disallow forbid forbidden prohibit bar block
password secret passphrase credential
login logon authenticate authentication signin
account user username role login
name user host hostname
kill terminate shoot shot murder sigkill
crash segfault segmentation panic die dead abort core
restart reboot reload relaunch
start begin begun boot launch spawn
stop shutdown end exit quit halt terminate shut
timeout late slow deadline expire stuck hang hung long unresponsive
full space room quota exhausted capacity enospc
damage corrupt broken mismatch malformed invalid checksum crc
missing absent lack nonexistent unknown lost gone
duplicate twice already taken exist conflict
copy replica backup snapshot standby follower slave
memory ram heap oom
disk storage device drive filesystem volume partition
network connection link socket peer
unreachable unavailable down dead offline
certificate tls ssl
encrypt encryption tls ssl cipher handshake
trust verify certificate issuer signer authority
configuration setting preference option parameter directive
error fault failure mistake problem fail exception wrong
delete remove erase drop purge discard
write save store persist dump flush
read fetch load retrieve
download fetch pull get
upload post send put
send transmit deliver forward
receive incoming arrive inbound
request query statement call
table relation
page url document
robot bot crawler spider
big large huge oversized exceed long
number integer numeric float decimal
word text string letter character
mail email message smtp
job task work
worker process child
process program pid executable binary
master parent leader primary
permission access right ownership mode privilege
address host hostname
resolve lookup dns
misspell typo syntax spelling parse
bracket parenthesis brace
time clock timestamp date
old outdated deprecated legacy obsolete
upgrade update newer release
version release
install unpack setup
ready listen serve accept
queue backlog
lock deadlock mutex
zero nothing division
negative minus
journal wal
size bytes length
price cost amount money rate
pay payment charge card
customer client buyer visitor
order purchase
product item goods article
heat hot temperature thermal
limit maximum quota threshold
allow permit grant accept
close disconnect hangup
reset broken pipe
folder directory path
image picture photo thumbnail
print printer label
busy load overload throttle throttling
many excessive limit flood rate
administrator root superuser admin sudo
schedule cron timer periodic
reply answer response respond
expect require need
small less below under
more above over exceed
undo revert rollback abort cancel
cancel abort interrupt
repair recover recovery restore fix
check verify validate test
clean vacuum purge trim
empty blank null none
change modify alter update edit
create make add new insert
share export nfs
script code program
library module package dependency
component plugin extension module
warn warning caution
secure security attack intrusion exploit
attack brute probe scan
wait block idle sleep
thread worker
retry again attempt
try attempt
ignore skip
repeat again duplicate
machine host server node computer
computer machine host
node member peer
cluster quorum ensemble
vote elect election leader
port bind listen
occupied taken use busy
group team
header field
cookie session
redirect moved forward
proxy gateway upstream backend
upstream backend proxy
web http
sign signature
signal sighup sigint sigquit sigkill sigterm sigusr1 sigusr2 sigabrt sigsegv
hardware device
card interface adapter nic
power voltage battery
"""


_ASKED = """
    refuse unauthorized unauthorised connection econnrefused, wrong incorrect invalid bad mismatch illegal
    improper unexpected, attacker intruder hacker attack brute malicious, lockout locked suspend suspended
    disabled banned ban, stranger unknown unrecognized unregistered unidentified, expired expire stale outdated
    lapsed, key fingerprint publickey pubkey field, elevate escalate sudo root privileged privilege, token
    ticket credential session jwt, allow authorize, rights permission privilege access mode acl, identify
    identity authenticate principal, logout logoff signout disconnect, overflow overrun exceed oversized,
    exhaust exhausted deplete full space capacity nospace enospc, reach hit exceed limit reachable unreachable
    connect, too excessive exceed, slow slowly latency lag delay degraded, lag behind delay replication lagging,
    quick fast rapid, hang freeze frozen deadlock stall stalled blocked, stall stuck wait block, wedge stuck jam
    blocked, timeout longer overdue elapsed, interval period seconds duration, duration elapsed took seconds ms
    latency, kill killed oom reap, die exit terminate quit, crash fatal dump sigsegv, leave exit quit depart
    gone disconnect, gone vanish disappear removed, arrive join enter connect, join member attach connect, come
    join connect start, return back recover restore reappear, recover resume heal replay, resume continue
    restart, pause suspend stop sleep, sleep suspend hibernate, wake resume alive, alive healthy running up
    active, healthy ok ready up passing, unhealthy failing down bad degraded, probe liveness readiness
    healthcheck check heartbeat, heartbeat ping keepalive alive, evict evicted expel remove drop cache expire,
    spawn fork create child, launch exec execute run, run execute exec invoke, invoke call execute, stop
    sigterm, restart respawn backoff, reboot boot kernel, boot startup init initialize, initialize init setup
    start prepare, begin initiate commence, finish complete done end succeed success, complete done success
    ended, succeed success successful ok complete, fail failed unable cannot could, unable cannot could failed
    failure, trouble problem error failure fault issue, complain warn warning error, mistake typo invalid
    syntax, bug panic assertion exception traceback, exception traceback stack raised throw, raise throw
    exception, catch handle handled caught sync behind lag, unhandled uncaught exception, assert assertion
    invariant, null nil pointer nullpointer, pointer reference address, index bounds range key btree, bounds
    range outside, division divide arithmetic, convert parse cast decode conversion, parse decode malformed
    unexpected, decode encode encoding charset utf unicode, garbled malformed corrupt encoding garbage, corrupt
    corruption damaged bad, damage torn, verify checksum hash digest, hash digest checksum md5 sha, signature
    signed gpg key, encrypt https, negotiate protocol cipher handshake, certificate cert x509 ca, issuer ca
    selfsigned, trust untrusted unknown, plain plaintext cleartext unencrypted http, secret key token, memory
    allocate allocation, allocate alloc malloc heap, leak leaked memory unclosed, garbage gc collector heap,
    swap memory paging, cpu processor core load, processor core, load utilization import loaded, throttle limit
    rate slow, burst rate spike, drive sda nvme, mount unmount filesystem volume attach, space disk left, write
    fsync, flush fsync sync, snapshot dump rdb checkpoint persist save, checkpoint savepoint, backup dump
    archive, archive tar compress, compress gzip zip deflate, unpack extract decompress unzip, open opened
    access load read reopen, import require include, export dump, copy replicate clone sync duplicate, replicate
    replica replication sync follower standby, replica secondary, primary main, leader coordinator elected,
    elect campaign term, follower peer learner, failover promote takeover switchover, promote master primary,
    demote stepdown follower, quorum majority votes, split partition brain, partition isolated unreachable, sync
    synchronize resync synchronization catchup, merge combine join, compact compaction merge vacuum, purge
    expire, cleanup clean remove purge prune vacuum, prune trim delete compact retention, retention expire old
    delete, rotate rotation logrotate reopen, trim truncate cut, truncate cut short incomplete, incomplete
    partial truncated unfinished premature, premature early unexpected eof, eof end, early before, duplicate
    unique exists, exist existing present, already exists, absent notfound nosuch, missing found exist enoent,
    enoent file directory, column field attribute, row record tuple entry insert, record entry, database db
    schema catalog, schema migration table, migrate migration upgrade alter, upgrade version, downgrade older
    version, query select sql, statement sql, transaction commit txn rollback, commit save, foreign constraint
    reference violates, violate violation constraint breach, constraint violates violation check unique, lock
    locked contention waiting, wait waiting lock blocked pending timeout, pending waiting queued backlog, queue
    pending buffer, cache cached memo buffer, plan planner optimizer, connection session client, connect
    connected connection established attach, disconnect closed lost dropped gone, hangup closed reset, reset
    peer connection rst, drop dropped lost, lose lost drop missing, interrupt interrupted signal eintr, cancel
    canceled cancelled, abort interrupted terminated surrender, network net interface ethernet, link carrier
    interface cable symlink, cable carrier, interface eth, wireless wifi wlan, route gateway routing path
    forward, unreachable route host noroute, remote peer client host, client browser user agent, browser agent
    useragent mozilla visitor, ip host address, domain dns zone name, dns nameserver nxdomain, resolve
    resolution, port socket scan, bind address inuse, listen listening serving accepting, serve serving, occupy
    occupied use taken bind, available free unavailable, unavailable 503 busy, overload capacity, gateway 502,
    redirect 301 302 location, moved relocated, notfound missing 404, forbidden denied 403, unauthorized 401
    authentication, internal server 500, page uri path block, url uri path link, request get post http want,
    submit send post, body payload content upload, payload content data, big size length, large size, small
    short tiny, short brief, long length size, empty zero, full entire whole, whole entire all, first initial,
    last final latest, new fresh, create created recreate, append write add, change set changed, refresh reload
    renew update, renew renewal reissue, reload hup reread config configuration, apply set applied, set
    configure assign, setting config, argument value parameter, value parameter, flag switch option, enable
    enabled on activate start, activate start, disable disabled off deactivate, switch change toggle, turn
    switch enable disable, configure configuration config setup, deprecated removed, old stale, support
    supported unsupported, unsupported unknown supported invalid, compatible incompatible version mismatch,
    incompatible mismatch version unsupported, require depend dependency, depend dependency requires needs,
    install installed package, uninstall remove purge deinstall, remove unlink, delete unlink, package deb rpm,
    library lib, extension suffix, program application app, application app service, service daemon unit server,
    daemon process, parent process, thread goroutine, job cron batch, batch bulk, schedule scheduled plan, cron
    scheduled crontab, timer tick, command cmd execute, script command sh python, shell bash sh command,
    terminal tty console, console tty, device dev usb, plug attach insert usb, detach unplug remove unmount,
    unmount umount, hardware machine, sensor temperature probe, fan cooling thermal, power supply, charge bill
    battery, image jpg png container tag, resize shrink scale grow thumbnail, grow extend expand increase,
    extend expand, shrink reduce trim, increase raise more, decrease reduce lower less, reduce lower, container
    pod docker instance, instance vm node, server daemon upstream backend, cluster nodes members, peer neighbor,
    registry repository image, repository repo, branch version ref, mail postfix delivery, deliver delivery sent
    relay delivered, bounce undeliverable returned rejected, spam junk blocked, recipient rcpt address, mailbox
    inbox user, relay forward transmit, send sent, receive received got, got received, publish post send,
    subscribe listen consumer, consume read receive, producer publisher sender, consumer subscriber reader,
    topic channel queue, event message notification, notify alert notification, alert alarm warning, notice
    warning info message, monitor watch check, observe metric watch, metric measurement sample, scrape collect
    pull metrics sample, collect gather, target endpoint scrape, endpoint url address, rule policy, evaluate
    rule check, report log send tell, track follow trace, count number total, number id digit, total sum,
    identifier id key, user uid customer, group gid, owner chown uid user, payment billing, order checkout,
    basket cart checkout, invoice bill, refund reverse, stock inventory quantity, ship shipment dispatch
    deliver, clock ntp skew drift, ntp time sync, skew drift, date day, retry retrying backoff, attempt tries
    break, repeat repeated times, give abort failed, skip omit, ignore ignored discard, keep retain hold, hold
    lock held, release free unlock, acquire obtain lock get, get receive obtain, push upload send, choose select
    pick, select pick, compare match differ, differ mismatch different, different mismatch changed, same
    identical equal duplicate, match matching equal, disagree mismatch conflict, conflict collision clash,
    collide conflict collision, inconsistent mismatch conflict corrupt, valid ok correct consistent, correct ok
    right fix, rebuild recreate reindex repair, break broken fail intrusion attack, broken failed, tear torn,
    odd strange unexpected unusual, strange unexpected, unusual unexpected abnormal, abnormal unexpected, sudden
    unexpected abrupt, abrupt unexpected, violent killed signal, clean graceful normal, graceful normal gentle,
    force forced immediate, immediate now, safe secure, unsafe insecure dangerous, insecure weak, suspicious
    attack possible, draw render paint, display show screen, print lpd cups, audio alsa sound, video graphics
    gpu, graphics gpu, mouse pointer input, input stdin data keyboard, output stdout result, ask request query,
    speak protocol, language locale, translate translation convert, character byte, sign minus, quote
    unterminated, nonsense garbage malformed invalid, rubbish garbage malformed, meaningless invalid, permit
    allowed, idle inactive unused sleepy, orphan stale abandoned leftover unused, leftover stale, abandon
    abandoned orphan gave, temporary tmp temp, permanent persistent, directory dir, folder dir, file path,
    descriptor fd file handle, pipe socket stream, journal log, replay journal redo, redo wal, position offset
    lsn, segment wal chunk, block segment chunk, sector block disk badblock, readonly ro remount, writable rw
    write
"""
"""What is said in questions, each with what logs may say for it, or the other way round."""


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """By a word, others that may stand for it."""
    found: dict[str, dict[str, None]] = {}
    for row in _GROUPS.splitlines():
        words = row.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    for row in _ASKED.split(","):
        asked, *said = row.split()
        for word in said:
            found.setdefault(asked, {})[word] = None
            found.setdefault(word, {})[asked] = None
    return {word: tuple(others) for word, others in found.items()}
