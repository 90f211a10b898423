"""Other words for what logs say: people ask who was turned away, where the log has denied.

A hand-written list of what is said in either way about computers, for models too small to know it. One group a line;
a word may stand in several.
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


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """By a word, others that may stand for it."""
    found: dict[str, dict[str, None]] = {}
    for row in _GROUPS.splitlines():
        words = row.split()
        for word in words:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in found.items()}
