# Sourced by suites and guests: results in the form of the Test Anything Protocol.

failed=0

# check NAME COMMAND [ARG...]: one test; what the command prints is shown only if it fails.
check() {
    local name=$1 output
    shift
    output=$(mktemp)
    if "$@" >"$output" 2>&1; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        sed 's/^/# /' "$output"
        failed=1
    fi
    rm -f "$output"
}

# refused COMMAND [ARG...]: succeeds if the command ran and failed by itself, not by a signal.
refused() {
    "$@"
    local code=$?
    [ $code -eq 255 ] || { [ $code -ne 0 ] && [ $code -lt 124 ]; }
}
