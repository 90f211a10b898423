"""Stack traces and other lines that go on with the one before, as programs write them."""

from __future__ import annotations

from engine.answers.fold.fold import fold
from engine.answers.fold.source import Source


def entries_of(text: str) -> list[list[int]]:
    """Line numbers of each entry."""
    folded = fold(Source(text))
    return [[folded.source.line_of(row) for row in folded.entry_rows(n)] for n in range(folded.entries)]


JAVA = """\
2026-11-30 16:40:50.834 ERROR [main] com.shop.Cart - could not add
java.lang.IllegalStateException: cart is closed
\tat com.shop.Cart.add(Cart.java:77)
\tat com.shop.Main.main(Main.java:12)
Caused by: java.io.IOException: pipe
\tat com.shop.Pipe.read(Pipe.java:5)
\t... 2 more

2026-11-30 16:40:51.001 INFO  [main] com.shop.Cart - opened
"""

JAVA_PLAIN = """\
started
Exception in thread "main" java.lang.RuntimeException: no
\tat com.shop.Main.main(Main.java:12)
Caused by: java.io.IOException: pipe
\tat com.shop.Pipe.read(Pipe.java:5)
\tSuppressed: java.lang.Exception: also
... 1 more
stopped
"""

PYTHON = """\
INFO:root:ready
ERROR:root:request failed
Traceback (most recent call last):
  File "app.py", line 12, in handle
    total / count
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app.py", line 20, in serve
    raise Failed() from error
app.Failed
INFO:root:ready
"""

GO = """\
listening on :8080
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
main.pick(...)
\t/src/main.go:10
main.main()
\t/src/main.go:15 +0x1d

exit status 2
"""

KUBELET = """\
I1130 16:40:50.123456   12345 kubelet.go:123] "Starting"
E1130 16:40:51.000000   12345 pod_workers.go:190] "Error syncing pod, skipping" err=<
\tfailed to "StartContainer" for "web"
 >
I1130 16:40:52.000000   12345 kubelet.go:200] "SyncLoop"
"""

SQL = """\
2026-11-30 16:40:51.338 UTC [3589] postgres@shop STATEMENT:  CREATE TABLE a(
\tid serial
\t);
INSERT INTO a VALUES (1);
2026-11-30 16:40:52.334 UTC [3589] postgres@shop LOG:  done
"""


def test_java_with_times() -> None:
    assert entries_of(JAVA) == [[1, 2, 3, 4, 5, 6, 7, 8], [9]]


def test_java_without_times() -> None:
    assert entries_of(JAVA_PLAIN) == [[1], [2, 3, 4, 5, 6, 7], [8]]


def test_python_with_an_exception_of_an_exception() -> None:
    assert entries_of(PYTHON) == [[1], [2], [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], [14]]


def test_go() -> None:
    assert entries_of(GO) == [[1], [2, 3, 4, 5, 6, 7, 8, 9], [10]]


def test_kubelet() -> None:
    assert entries_of(KUBELET) == [[1], [2, 3, 4], [5]]


def test_statements_of_many_lines() -> None:
    assert entries_of(SQL) == [[1, 2, 3, 4], [5]]


def test_closing_brackets_and_blank_lines_go_on() -> None:
    assert entries_of("config: {\n  a: 1\n}\n\nnext\n") == [[1, 2, 3, 4], [5]]
    assert entries_of("\n\n  text\nmore\n") == [[1, 2, 3], [4]]


def test_a_few_times_do_not_swallow_a_log_without() -> None:
    text = "".join(f"worker {n} is idle\n" for n in range(30)) + "2026-11-30 16:40:50 rotated\nworker 1 is idle\n"
    assert len(entries_of(text)) == 32


def test_windows_of_a_long_line_are_of_its_entry() -> None:
    folded = fold(Source("first\n" + "word " * 4000 + "\nlast\n"))
    assert [len(folded.entry_rows(n)) for n in range(folded.entries)] == [1, 5, 1]


def test_an_unindented_trace_ends_at_the_next_time() -> None:
    text = "a\nb\nc\nd\ngoroutine 7 [select]:\nmain.run()\n2026-11-30 16:40:50 up\nmain.other\n"
    assert entries_of(text) == [[1], [2], [3], [4, 5, 6], [7], [8]]
