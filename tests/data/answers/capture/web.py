"""A small Flask shop for gunicorn; its faults are real ones, in Python's, SQLite's and gunicorn's words: capture.sh."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
import urllib.request

from flask import Flask, request

logging.basicConfig(format="[%(asctime)s] [%(process)d] [%(levelname)s] %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("shop")
logging.getLogger("werkzeug").setLevel(logging.WARNING)
app = Flask("shop")
FULL, DATABASE = os.environ["FULL_DISK"], os.environ["DATABASE"]


def database(timeout: float = 0.3) -> sqlite3.Connection:
    return sqlite3.connect(DATABASE, timeout=timeout)


@app.get("/item/<int:number>")
def item(number: int) -> dict[str, object]:
    with database() as connection:
        row = connection.execute("select name, price from items where id = ?", (number,)).fetchone()
    log.info("item %d shown to visitor %s", number, request.args.get("visitor", "-"))
    return {"name": row[0], "price": row[1]}


@app.post("/basket/<int:number>")
def basket(number: int) -> dict[str, int]:
    amount = int(request.form.get("amount", "1"))
    log.info("basket %d has %d articles", number, amount)
    return {"amount": amount}


@app.post("/order/<int:number>")
def order(number: int) -> dict[str, int]:
    with database() as connection:
        connection.execute("insert into orders (id, total) values (?, ?)", (number, 10 * number))
    log.info("order %d taken, total %d", number, 10 * number)
    return {"order": number}


@app.get("/slow")
def slow() -> str:
    log.info("yearly statistics asked for")
    time.sleep(60)
    return "done"


@app.get("/lock")
def lock() -> str:
    holder = database()
    holder.execute("begin exclusive")
    try:
        with database() as connection:
            connection.execute("update items set price = price + 1")
    finally:
        holder.close()
    return "done"


@app.get("/export")
def export() -> str:
    with open(os.path.join(FULL, "export.csv"), "wb") as file:
        file.write(b"0" * (8 << 20))
    return "done"


@app.get("/rates")
def rates() -> dict[str, object]:
    log.info("exchange rates are fetched")
    with urllib.request.urlopen(os.environ["RATES"], timeout=1) as answer:
        return json.load(answer)


@app.get("/discount/<int:percent>")
def discount(percent: int) -> dict[str, float]:
    return {"factor": 100 / (100 - percent)}


@app.get("/thumbnail")
def thumbnail() -> str:
    log.warning("thumbnail of picture 77 takes a lot of memory")
    os.kill(os.getpid(), 9)
    return "never"


@app.get("/template")
def template() -> str:
    return app.jinja_env.get_template("invoice.html").render()


@app.get("/import")
def bring_in() -> str:
    data = b"name;price\ncaf\xe9;3\n"
    return data.decode("utf-8")


@app.get("/settings")
def settings() -> object:
    return json.loads('{"theme": "dark", "columns": 3,}')
