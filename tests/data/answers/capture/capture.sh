#!/bin/bash
# Runs real services on loopback, gives each an eventful minute and keeps what they wrote: capture.sh NAME DIRECTORY,
# NAME being java_app, gunicorn_app, mariadb_db, apache, prometheus_app, etcd_app, syslog_host or container.
# As root on Debian 12 with those packages, one after the other; each is stopped again. syslog_host adds two users and a
# crontab for two minutes. `clean` takes the machine's name, kernel and paths out.
set -u
here=$(cd "$(dirname "$0")" && pwd); name=$1; out=$2; work=$(mktemp -d); mkdir -p "$out"
small=$work/small; mkdir "$small"; mount -t tmpfs -o size=2m tmpfs "$small"
trap 'umount "$small"; rm -rf "$work"' EXIT
quiet() { "$@" >/dev/null 2>&1; }
clean() { sed -e "s/\b$(hostname)\b/host/g" -e "s#$work#/srv/run#g" -e "s#$here#/srv/app#g" -e "s#$(uname -r)#6.1.0#g"; }

java_app() {
  java -Xmx48m -Xss256k -XX:MaxJavaStackTraceDepth=14 \
    -Djava.util.logging.SimpleFormatter.format='%1$tF %1$tT,%1$tL %4$-7s [%3$s] %5$s%6$s%n' \
    "$here/Orders.java" "$small" 2>"$work/log"
  clean <"$work/log" >"$out/java-orders.log"
}

gunicorn_app() {
  export FULL_DISK=$small DATABASE=$work/shop.db RATES=http://127.0.0.1:9/rates
  python3 - <<'P'
import os, sqlite3
c = sqlite3.connect(os.environ["DATABASE"])
c.executescript("create table items(id integer primary key, name, price); create table orders(id integer primary key, total);")
c.executemany("insert into items values (?,?,?)", [(i, f"thing {i}", i) for i in range(1, 61)]); c.commit()
P
  (cd "$here" && PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/gunicorn -w 3 -t 4 -b 127.0.0.1:18080 --access-logfile - --error-logfile - --capture-output \
    --access-logformat '[%(p)s] %(m)s %(U)s %(s)s %(b)s bytes %(M)s ms "%(a)s"' --pid "$work/pid" web:app >"$work/log" 2>&1) &
  sleep 3
  python3 "$here/visits.py" 18080
  kill -HUP "$(cat "$work/pid")"; sleep 2; quiet curl -s 127.0.0.1:18080/item/3
  kill -TERM "$(cat "$work/pid")"; sleep 2
  clean <"$work/log" >"$out/gunicorn.log"
}

mariadb_db() {
  local data=$work/db sock=$work/sock sql="mariadb -S $work/sock -f"
  mkdir "$data"; chmod 755 "$work"; chown mysql "$data" "$work"
  quiet mariadb-install-db --user=mysql --datadir="$data" --skip-test-db
  start() { mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$sock" --port=13306 --bind-address=127.0.0.1 --pid-file="$work/pid" \
      --log-error="$work/log.err" --log-warnings=9 --innodb-print-all-deadlocks --innodb-lock-wait-timeout=2 --max-connections=9 \
      --max-allowed-packet=1M --wait-timeout=3 --interactive-timeout=3 --innodb-buffer-pool-size=16M "$@" & server=$!; for _ in $(seq 60); do quiet mariadb -S "$sock" -e 'select 1' && return; sleep 0.5; done; }
  start
  $sql -e "create database shop; create user web@'127.0.0.1' identified by 'right'; grant all on shop.* to web@'127.0.0.1'; create user report@'127.0.0.1' identified by 'r'; grant select on shop.* to report@'127.0.0.1' with max_user_connections 1" 2>/dev/null
  local web="mariadb -h127.0.0.1 -P13306 -uweb -pright shop"
  $web -e "create table stock (id int primary key, left_over int) engine=innodb; insert into stock values (1,5),(2,9); create table notes (id int primary key, t text) engine=myisam; insert into notes values (1,'a'),(2,'b'); create table t (a int)"
  for i in $(seq 25); do
    quiet mariadb -h127.0.0.1 -P13306 -uweb "-pguess$i" shop -e 'select 1'; [ $((i % 9)) = 0 ] && quiet mariadb -h127.0.0.1 -P13306 -uadmin -padmin -e 'select 1'
    quiet $web -e 'select 1'
  done
  quiet mariadb -h127.0.0.1 -P13306 -uroot -e 'select 1'; quiet mariadb -h127.0.0.1 -P13306 -uweb -pright payroll -e 'select 1'
  for i in 1 2 3; do (echo 'select 1;'; sleep 5) | quiet mariadb -h127.0.0.1 -P13306 -uweb -pright shop --skip-reconnect & done
  (echo "begin; update stock set left_over=1 where id=1; select sleep(1); update stock set left_over=1 where id=2;" | quiet $web) &
  (sleep 0.3; echo "begin; update stock set left_over=1 where id=2; select sleep(1); update stock set left_over=1 where id=1;" | quiet $web) &
  sleep 4
  python3 -c "print('insert into t values (' + '1'*1500000 + ');')" | quiet $web
  for i in $(seq 14); do quiet mariadb -h127.0.0.1 -P13306 -uweb -pright shop -e 'select sleep(2)' & done; sleep 4
  printf 'GET / HTTP/1.0\r\n\r\n' | quiet timeout 2 nc 127.0.0.1 13306
  $sql -e "kill (select 1)" 2>/dev/null
  $sql -e "set global event_scheduler=on; create event shop.nightly on schedule every 1 second do insert into shop.missing values (1)" 2>/dev/null; sleep 3
  $sql -e "drop event shop.nightly; set global event_scheduler=off; set global general_log_file='/nowhere/x'; set global innodb_buffer_pool_size=33554432" 2>/dev/null; sleep 1
  $sql -e "create table shop.big (b longblob) data directory='$small'; insert into shop.big values (repeat('a', 900000)); insert into shop.big select b from shop.big; insert into shop.big select b from shop.big; insert into shop.big select b from shop.big" 2>/dev/null
  ($sql -e "use shop; begin; update stock set left_over = 0; insert into notes values (3,'c'); select sleep(3)" >/dev/null 2>&1 &); sleep 1
  kill -9 $server; sleep 1; printf 'xx' | dd of="$data/shop/notes.MYI" bs=1 seek=24 conv=notrunc status=none; start
  $sql -e "select * from shop.notes; check table shop.notes; repair table shop.notes" >/dev/null 2>&1
  rm -f "$data/shop/t.ibd"; $sql -e "flush tables; select * from shop.t" >/dev/null 2>&1
  quiet mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$work/sock2" --port=13306 --bind-address=127.0.0.1 --log-error="$work/log.err" --innodb-buffer-pool-size=16M &
  sleep 8
  kill %% 2>/dev/null; kill $server; sleep 4
  quiet timeout 20 mariadbd --no-defaults --user=mysql --datadir="$data" --socket="$sock" --log-error="$work/log.err" --innodb_flush_metod=O_DIRECT
  start --port=13306; kill $server; sleep 3
  clean <"$work/log.err" >"$out/mariadb.log"
}

apache() {
  a2=$work/a2; mkdir -p $a2/htdocs/private $a2/htdocs/cgi $a2/htdocs/secret $a2/htdocs/gone $a2/logs; chmod -R 755 "$work"
  openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=old.shop.example -keyout $a2/k.pem -out $a2/c.pem 2>/dev/null
  htpasswd -bc $a2/users anna right 2>/dev/null; echo '<h1>shop</h1>' >$a2/htdocs/index.html; echo 'Requir nothing' >$a2/htdocs/gone/.htaccess; echo x >$a2/htdocs/gone/x.html
  printf '#!/bin/sh\necho broken\n' >$a2/htdocs/cgi/nohead; printf '#!/bin/sh\necho "disk table is corrupt" >&2\nprintf "Content-type: text/plain\\n\\nok"\n' >$a2/htdocs/cgi/noisy
  printf '#!/usr/bin/nothing\n' >$a2/htdocs/cgi/nointerp; printf '#!/bin/sh\nsleep 9\n' >$a2/htdocs/cgi/slow; chmod +x $a2/htdocs/cgi/*; ln -s /etc/shadow $a2/htdocs/link; echo x >$a2/htdocs/secret/a.html; printf '#!/bin/sh\n' >$a2/htdocs/cgi/noexec; chmod -x $a2/htdocs/cgi/noexec
  { for m in mpm_event authn_core authn_file authz_core authz_host authz_user auth_basic access_compat dir mime cgid alias rewrite proxy proxy_http ssl socache_shmcb reqtimeout unixd autoindex; do f=/usr/lib/apache2/modules/mod_$m.so; [ -f $f ] && echo "LoadModule ${m}_module $f"; done
  cat <<C
Listen 127.0.0.1:18081
Listen 127.0.0.1:18443
ServerName www.shop.example
DocumentRoot $a2/htdocs
ErrorLog $a2/log
LogLevel info ssl:info
PidFile $a2/pid
ScriptSock $a2/sock
User www-data
Group www-data
TypesConfig /etc/mime.types
StartServers 1
MaxRequestWorkers 25
ThreadsPerChild 25
RequestReadTimeout header=2 body=2
LimitRequestBody 2000
LimitRequestFieldSize 400
<Directory $a2/htdocs>
 Require all granted
 AllowOverride All
 Options SymLinksIfOwnerMatch ExecCGI
</Directory>
<Directory $a2/htdocs/private>
 AuthType Basic
 AuthName Staff
 AuthUserFile $a2/users
 Require user anna
</Directory>
<Directory $a2/htdocs/secret>
 Require ip 192.0.2.0/24
</Directory>
<Directory $a2/htdocs/cgi>
 SetHandler cgi-script
</Directory>
ProxyPass /api http://127.0.0.1:9/
ProxyPass /wait http://127.0.0.1:18099/ timeout=1
ProxyTimeout 1
CGIDScriptTimeout 2
RewriteEngine on
RewriteRule ^/loop(.*)\$ http://127.0.0.1:18081/loop\$1x [P]
<VirtualHost 127.0.0.1:18443>
 ServerName www.shop.example
 SSLEngine on
 SSLCertificateFile $a2/c.pem
 SSLCertificateKeyFile $a2/k.pem
</VirtualHost>
C
  } >$a2/conf
  python3 -c "
import socket,time
s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1',18099)); s.listen(9); time.sleep(60)" & local sink=$!
  apache2 -f $a2/conf; sleep 2
  u=127.0.0.1:18081; c="quiet curl -s -m 6"
  for i in $(seq 30); do $c $u/private/ -u anna:no$i; $c $u/secret/a.html -H "Referer: http://$u/page$i"; $c $u/img/$i.png; [ $((i % 6)) = 0 ] && $c $u/api/stock/$i; done
  $c $u/private/ -u bert:x; $c $u/private/ -H 'Authorization: Digest x'; $c $u/gone/x.html; $c $u/link; $c $u/cgi/nohead; $c $u/cgi/noisy; $c $u/cgi/nointerp; $c $u/cgi/noexec; $c $u/cgi/slow; $c $u/cgi/none; $c $u/wait/x
  $c $u/ -H "Cookie: $(printf 'a%.0s' $(seq 500))"; $c $u/ --data "$(printf 'a%.0s' $(seq 2500))"; $c "$u/%2e%2e/%2e%2e/etc/passwd" --path-as-is; $c "$u/a%00b"; $c "$u/$(printf 'a%.0s' $(seq 9000))"
  printf 'GARBAGE\r\n\r\n' | quiet timeout 2 nc 127.0.0.1 18081; printf 'GET / HTTP/1.1\r\n' | quiet timeout 4 nc 127.0.0.1 18081; printf 'hello\n' | quiet timeout 2 nc 127.0.0.1 18443; quiet curl -sk -m 5 https://127.0.0.1:18443/; quiet curl -sk --tls-max 1.0 https://127.0.0.1:18443/; $c http://127.0.0.1:18443/
  quiet curl -s -m 5 --cacert /etc/ssl/certs/ca-certificates.crt https://127.0.0.1:18443/
  for i in $(seq 40); do (printf 'GET / HTTP/1.1\r\n' | quiet timeout 5 nc 127.0.0.1 18081 &); done; sleep 6
  for i in $(seq 20); do $c $u/img/again$i.png; $c $u/private/ -u anna:bad; $c $u/secret/a.html; done
  cp $a2/conf $a2/conf2; kill -USR1 "$(cat $a2/pid)"; sleep 2; child=$(pgrep -P "$(cat $a2/pid)" | tail -1); kill -SEGV "$child"; sleep 2; kill -HUP "$(cat $a2/pid)"; sleep 2
  for i in $(seq 20); do $c $u/api/last$i; $c $u/secret/a.html; done
  kill "$(cat $a2/pid)"; kill $sink; sleep 2
  clean <$a2/log >"$out/apache-error.log"
}

prometheus_app() {
  p=$work/prom; mkdir -p $p/rules
  rules() { cat >$p/rules/r.yml; }
  conf() { cat >$p/c.yml <<C
global: {scrape_interval: 1s, evaluation_interval: 1s, scrape_timeout: 500ms}
rule_files: ["$p/rules/*.yml"]
scrape_configs:
- job_name: self
  static_configs: [{targets: ["127.0.0.1:19090"]}]
- job_name: shop
  sample_limit: $1
  static_configs: [{targets: ["127.0.0.1:19101", "127.0.0.1:19102"]}]
- job_name: files
  file_sd_configs: [{files: ["$p/sd/*.json"]}]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:9"]}]}]}
${2:-}
C
  }
  echo 'groups: [{name: a, rules: [{alert: Always, expr: vector(1)}, {record: "x:dup", expr: "label_replace(up, \"instance\", \"\", \"\", \"\") * on(job) group_left up"}]}]' | rules
  mkdir $p/sd $p/data; conf 100
  python3 - <<'P' &
import http.server, threading, time
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        n = self.server.server_port; t = time.time() - T
        body = "a{x=\"1\"} 1\n"
        if n == 19101 and t > 12: body += "a{x=\"1\"} 2\n"
        if n == 19101 and t > 18: body = "a{x=1\n"
        if n == 19102 and 8 < t < 12: body = "".join(f"m{i} 1\n" for i in range(300))
        if n == 19102 and t > 16: body = "old 1 1000\nb 1 %d\nb 2 %d\n" % (time.time()*1000, time.time()*1000-5000)
        if n == 19102 and t > 24: time.sleep(1)
        self.send_response(200); self.end_headers()
        try: self.wfile.write(body.encode())
        except OSError: pass
    def log_message(self, *a): pass
T = time.time()
for n in (19101, 19102): threading.Thread(target=http.server.ThreadingHTTPServer(("127.0.0.1", n), H).serve_forever, daemon=True).start()
time.sleep(75)
P
  local exporters=$!
  run() { prometheus --config.file=$p/c.yml --storage.tsdb.path=$1 --web.listen-address=127.0.0.1:19090 --web.enable-lifecycle --log.level=debug --storage.tsdb.min-block-duration=10s --storage.tsdb.max-block-duration=20s --query.timeout=2s ${2:-} >>$work/log 2>&1 & server=$!; }
  run $p/data; sleep 10; quiet curl -s '127.0.0.1:19090/api/v1/query?query=sum(up'; echo '[{"targets": ["127.0.0.1:19103"]' >$p/sd/a.json; sleep 3
  conf 100 'scrape_config: 3'; quiet curl -s -XPOST 127.0.0.1:19090/-/reload; sleep 2; conf 100; echo 'groups: [{name: b, rules: [{record: "y", expr: "sum(up"}]}]' | rules; quiet curl -s -XPOST 127.0.0.1:19090/-/reload; sleep 2
  echo 'groups: [{name: b, rules: [{record: "y", expr: "up"}]}]' | rules; quiet curl -s -XPOST 127.0.0.1:19090/-/reload; echo '[{"targets": ["127.0.0.1:19103"]}]' >$p/sd/a.json; sleep 12
  run $p/data; sleep 2; kill -9 $server; sleep 1
  pkill -9 -f -- "--storage.tsdb.path=$p/data"; sleep 1; for f in $p/data/wal/0*; do printf 'garbage' | dd of=$f bs=1 seek=500 conv=notrunc status=none; done; mkdir $p/data/01BROKENBLOCK0000000000000
  run $p/data; sleep 8; kill $server; sleep 2; run $small/data; sleep 14; kill $server; sleep 2; kill $exporters
  conf 100; sed -i 's/1s/one second/' $p/c.yml; run $p/data; sleep 2
  grep -v "level=debug.*\(component=\"discovery\|Discoverer\)" $work/log | clean >"$out/prometheus.log"
}

etcd_app() {
  local e="etcd --listen-client-urls http://127.0.0.1:12379 --advertise-client-urls http://127.0.0.1:12379 --listen-peer-urls http://127.0.0.1:12380 --initial-advertise-peer-urls http://127.0.0.1:12380 --initial-cluster a=http://127.0.0.1:12380 --name a --logger zap --log-outputs stderr --log-level info --quota-backend-bytes 1000000 --auto-compaction-retention=5s --auto-compaction-mode=periodic --snapshot-count=100"
  export ETCDCTL_API=3; local ctl="etcdctl --endpoints 127.0.0.1:12379"
  $e --data-dir $work/e >>$work/log 2>&1 & server=$!; sleep 4
  for i in $(seq 60); do quiet $ctl put k$i "$(head -c 400 /dev/zero | tr '\0' x)"; done
  quiet $ctl user add root:root; quiet $ctl role add root; quiet $ctl user grant-role root root; quiet $ctl auth enable; quiet $ctl --user root:wrong get k1; quiet $ctl --user ghost:x get k1; quiet $ctl --user root:root auth disable
  quiet $ctl lease revoke 1234abcd; quiet $ctl snapshot save $work/s.db; quiet $ctl compaction 5; quiet $ctl defrag; for i in $(seq 40); do head -c 60000 /dev/urandom | base64 -w0 | quiet $ctl put big$i; done
  quiet $ctl alarm list; quiet $ctl put after full; quiet $ctl member add b --peer-urls=http://127.0.0.1:12390; sleep 3
  kill -9 $server; sleep 1; $e --data-dir $work/e >>$work/log 2>&1 & server=$!; sleep 8; kill $server; sleep 2
  timeout 5 $e --data-dir $small/e >>$work/log 2>&1; mkdir $work/f; timeout 5 $e --data-dir $work/f --listen-client-urls http://127.0.0.1:22222222 >>$work/log 2>&1
  w=$(ls $work/e/member/wal/*.wal | head -1); printf 'garbage' | dd of=$w bs=1 seek=300 conv=notrunc status=none; timeout 8 $e --data-dir $work/e >>$work/log 2>&1
  clean <$work/log >"$out/etcd.log"
}

syslog_host() {
  # One host's syslog: rsyslog takes in what cron, Postfix, BIND, sudo, su, sshd and logger write.
  cat >$work/rs.conf <<C
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="$work/devlog")
global(localHostname="host" workDirectory="$work")
template(name="t" type="string" string="%timegenerated:::date-rfc3164% host %syslogtag%%msg:::sp-if-no-1st-sp%%msg:::drop-last-lf%\n")
*.* action(type="omfile" file="$work/log" template="t")
C
  rm -f /dev/log; rsyslogd -f $work/rs.conf -i $work/rs.pid; sleep 1; ln -s $work/devlog /dev/log
  useradd -m deploy; useradd -m backup2 -s /bin/sh; echo 'deploy ALL=(root) /bin/ls' >$work/sudoers; cp $work/sudoers /etc/sudoers.d/deploy; chmod 440 /etc/sudoers.d/deploy
  printf '* * * * * /bin/true\n* * * * * echo tape missing; exit 3\n' | crontab -u backup2 -; echo 'bad line here' | crontab -u deploy - 2>/dev/null; printf '* * * * * root /usr/bin/nothing-there\n61 * * * * root /bin/true\n' >/etc/cron.d/shop
  cron -f & crond=$!
  mkdir $work/pf $work/pfq $work/pfd; chmod 755 $work; cp -r /etc/postfix/. $work/pf/; chown postfix $work/pfd
  cat >$work/pf/main.cf <<C
compatibility_level=3.6
queue_directory=$work/pfq
data_directory=$work/pfd
myhostname=mail.shop.example
mydestination=shop.example, localhost
mynetworks=192.0.2.0/24
inet_interfaces=127.0.0.1
inet_protocols=ipv4
smtpd_banner=ready
message_size_limit=9000
mailbox_size_limit=9000
smtpd_recipient_restrictions=permit_mynetworks, reject_unauth_destination, reject_unlisted_recipient
smtpd_sender_restrictions=reject_non_fqdn_sender
smtpd_hard_error_limit=3
smtpd_timeout=3s
smtpd_client_connection_count_limit=3
local_recipient_maps=proxy:unix:passwd.byname \$alias_maps
alias_maps=hash:$work/aliases
mail_spool_directory=$work/spool/
relayhost=[127.0.0.1]:9
syslog_name=postfix
C
  printf 'root: deploy\nloop: loop\nsales: "|/usr/bin/nothing"\nnews: nobody@far.example\n' >$work/aliases; mkdir -m 1777 $work/spool; cp $work/pf/main.cf $work/mc; postalias -c $work/pf $work/aliases
  sed -i -e 's/^smtp .*inet/2525 inet/' -e 's/\(inet\|unix\)\( \+[-yn]\)\( \+[-yn]\) \+y /\1\2\3 n /' $work/pf/master.cf
  postfix -c $work/pf start 2>/dev/null; sleep 3
  m() { quiet swaks --server 127.0.0.1:2525 --timeout 5 --helo "$1" --from "$2" --to "$3" --body "${4:-hello}"; }
  for i in $(seq 12); do m pc$i.shop.example anna@far.example deploy@shop.example; [ $((i % 3)) = 0 ] && m x$i a@far.example victim$i@elsewhere.example; m y$i b@far.example nobody$i@shop.example; done
  m pc anna deploy@shop.example; m pc a@far.example root@shop.example; m pc a@far.example sales@shop.example; m pc a@far.example loop@shop.example; m pc a@far.example news@shop.example; m pc a@far.example deploy@shop.example "$(head -c 12000 /dev/zero | tr '\0' y)"
  for i in $(seq 5); do (sleep 4 | quiet nc 127.0.0.1 2525 &); done; printf 'FOO\r\nBAR\r\nBAZ\r\nQUX\r\n' | quiet timeout 5 nc 127.0.0.1 2525
  mkdir $work/named; cat >$work/named/named.conf <<C
options { directory "$work/named"; listen-on port 15353 {127.0.0.1;}; listen-on-v6 {none;}; pid-file "$work/named/pid"; session-keyfile "$work/named/key"; recursion no; allow-transfer {none;}; dnssec-validation no; };
controls { };
logging { channel s { syslog daemon; severity info; print-category no; }; category default { s; }; category queries { s; }; category security { s; }; category update { s; }; };
zone "shop.example" { type master; file "good"; allow-update {none;}; };
zone "broken.example" { type master; file "broken"; };
zone "lost.example" { type master; file "nofile"; };
zone "copy.example" { type slave; masters port 9 {127.0.0.1;}; file "copy"; };
C
  printf '$TTL 60\n@ SOA ns a 7 60 60 60 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.80\n' >$work/named/good; printf '$TTL 60\n@ SOA ns a 1 60 60 60 60\n@ NS ns\nns A 192.0.2.300\n' >$work/named/broken
  chmod 755 $work/named; named -u root -c $work/named/named.conf; sleep 2
  for i in $(seq 15); do quiet dig -p 15353 @127.0.0.1 host$i.shop.example +tries=1 +time=1; [ $((i % 5)) = 0 ] && quiet dig -p 15353 @127.0.0.1 www.other$i.example +tries=1 +time=1; done
  quiet dig -p 15353 @127.0.0.1 shop.example AXFR +tries=1; printf 'server 127.0.0.1 15353\nupdate add evil.shop.example 60 A 192.0.2.66\nsend\n' | quiet nsupdate -t 2
  ssh-keygen -q -t ed25519 -N '' -f $work/hk; mkdir -p /run/sshd; /usr/sbin/sshd -f /dev/null -p 2222 -h $work/hk -o ListenAddress=127.0.0.1 -o PidFile=$work/sshpid -o PasswordAuthentication=yes -o MaxAuthTries=2
  for u in root deploy oracle test; do quiet timeout 5 ssh -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes $u@127.0.0.1 true; done; printf 'HEAD / HTTP/1.0\r\n\r\n' | quiet timeout 3 nc 127.0.0.1 2222
  quiet su backup2 -c true; su deploy -s /bin/bash -c 'echo wrong | su backup2 -s /bin/sh -c true; echo wrong | sudo -S /bin/cat /etc/shadow; sudo -n /bin/ls' >/dev/null 2>&1; usermod -L backup2; groupadd vault; passwd -S deploy >/dev/null
  logger -t kernel-note -p kern.warn 'sdb: write cache is off'; for i in 1 2 3; do logger -t backup "set $i of 3 written to $small in $((i * 7)) s"; done; logger -p daemon.err -t backup "set 4: $(dd if=/dev/zero of=$small/x bs=1M count=4 2>&1 | head -1)"
  sleep 65; printf '5 4 * * * root /bin/true\n' >/etc/cron.d/shop; sleep 62
  kill $crond $(cat $work/sshpid $work/named/pid); quiet postfix -c $work/pf stop; sleep 2; userdel -rf deploy 2>/dev/null; userdel -rf backup2 2>/dev/null; groupdel vault; rm -f /etc/cron.d/shop /etc/sudoers.d/deploy /var/spool/cron/crontabs/backup2 /var/spool/cron/crontabs/deploy; sleep 1
  kill "$(cat $work/rs.pid)"; rm -f /dev/log; sleep 1; clean <$work/log >"$out/syslog.log"
}

container() {
  # A queue worker's two streams, each line stamped as a Kubernetes node stamps them (CRI log format).
  (cd "$work" && SMALL=$small python3 "$here/stamp.py" python3 -u "$here/worker.py" >"$work/log")
  clean <"$work/log" >"$out/container-cri.log"
}

"${name}"
