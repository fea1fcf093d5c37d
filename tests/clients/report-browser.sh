#!/bin/bash
# Reports in a real browser: Chromium without a window opens what the program writes about made-up
# results, on three widths, light and dark, on paper, and with scripts forbidden. Needs REPORTS, the
# example program that writes them. Pictures of every page, to look at: SHOTS=DIRECTORY.
set -u
here=$(dirname "$(realpath -e "$0")")
: "${REPORTS:?the program that writes example reports, e.g. REPORTS=target/debug/examples/reports}"
work=$(mktemp -d "${TMPDIR:-/tmp}/weir-reports.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 143' INT TERM HUP

if ! "$REPORTS" "$work" >"$work/log" 2>&1; then
    echo "not ok - writes-example-reports"
    sed 's/^/# /' "$work/log"
    exit 1
fi
echo "ok - writes-example-reports"
shots=()
[ -z "${SHOTS:-}" ] || shots=(--shots "$SHOTS")
PYTHONDONTWRITEBYTECODE=1 python3 "$here/report-browser/check.py" "${shots[@]}" \
    "$work"/{whole,sound,compared}.html
