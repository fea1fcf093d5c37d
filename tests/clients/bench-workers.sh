#!/bin/bash
# Load from several machines: eight workers, each in a network namespace of its own, on a bridge with
# a server in a ninth and the coordinator in front.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=suite.bash
. "$here/suite.bash"

target=nfs://10.78.0.1/vol
workers=8
worker_pids=()

# join NAME NUMBER: a machine of its own at 10.78.0.NUMBER.
join() {
    ip netns add "$1" && ip link add "$1" type veth peer name eth0 netns "$1" &&
        ip link set "$1" master lan up && ip -n "$1" link set lo up &&
        ip -n "$1" addr add "10.78.0.$2/24" dev eth0 && ip -n "$1" link set eth0 up
}

network() {
    ip link add lan type bridge && ip addr add 10.78.0.254/24 dev lan && ip link set lan up && join server 1 || return 1
    for number in $(seq $workers); do
        join "w$number" $((10 + number)) || return 1
    done
}

serve() {
    ip netns exec server "$WEIR" serve --data "$data" --nfs 10.78.0.1:2049 >>"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
        if (: </dev/tcp/10.78.0.1/2049) 2>/dev/null && weir pool list 2>/dev/null; then
            weir pool create main --level ultra --size 4TiB && weir volume create vol --pool main --quota 1TiB &&
                weir export add vol --network 10.78.0.0/24 --access rw --squash none
            return
        fi
        sleep 0.1
    done
    tail -n 20 "$work/server.log" | sed 's/^/# /'
    return 1
}

# start_worker NUMBER: returns when it listens.
start_worker() {
    ip netns exec "w$1" "$WEIR" bench worker --name "w$1" --listen "10.78.0.$((10 + $1))" --secret-file "$work/token" \
        >"$work/w$1.log" 2>&1 &
    worker_pids[$1]=$!
    for _ in $(seq 600); do
        ! grep -qs 'listens on' "$work/w$1.log" || return 0
        kill -0 "${worker_pids[$1]}" 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/w$1.log"
    return 1
}

# job SECONDS: writes a job of eight to a file.
job() {
    cat >"$work/job-$1.fio" <<END
[mix]
rw=randrw
rwmixread=70
bs=8k
size=2m
iodepth=8
numjobs=8
direct=1
ioengine=libaio
group_reporting
time_based
ramp_time=1s
runtime=$1s
END
}

# run NAME SECONDS OPTION...: a measurement in a directory of its own, whose results are NAME.json
# and NAME.html.
run() {
    local name=$1 seconds=$2
    shift 2
    "$WEIR" bench run "$work/job-$seconds.fio" "$target" --dir "$name" "$@" --json "$work/$name.json" --html "$work/$name.html" 2>&1
}

# all_workers: the options that name all that listen.
all_workers() {
    for number in $(seq $workers); do
        echo "--worker w$number=10.78.0.$((10 + number)):7420"
    done
    echo "--secret-file $work/token"
}

# holds NAME EXPRESSION: jq says so of the only run in NAME.json.
holds() {
    jq -e ".tests[0].steps[0] as \$step | \$step.runs[0] as \$run | $2" "$work/$1.json" && return
    jq '.tests[0].steps[0] | {skipped, notes, workers: .runs[0].workers, total: .runs[0].total.total}' "$work/$1.json"
    return 1
}

eight_are_the_sum() {
    # shellcheck disable=SC2046
    run sum 5 $(all_workers) || return 1
    holds sum '($run.workers | length) == 8' && holds sum '[$run.workers[].operations] | min > 0' &&
        holds sum '$run.total.total.operations == ([$run.workers[].operations] | add)' &&
        holds sum '$run.total.total.bytes == ([$run.workers[].bytes] | add)' &&
        holds sum '[$run.workers[].lost] | all(. == null)' && holds sum '$run.total.interrupted | not' &&
        holds sum '[$run.workers[].clock_uncertainty_ms] | all(. > 0)' &&
        holds sum '[$run.total.by_operation[].latency_ms.p99] | all(. > 0)' && grep -q 'w8' "$work/sum.html"
}

nothing_is_left() {
    refused run sum 1 --reuse >"$work/left.log"
    complains left 'NOENT'
}

# shows FILE WORDS: returns when the file has these words.
shows() {
    for _ in $(seq 600); do
        ! grep -q -e "$2" "$1" || return 0
        sleep 0.1
    done
    cat "$1"
    return 1
}

one_killed_is_marked() {
    local code=0 running
    # shellcheck disable=SC2046
    run killed 15 $(all_workers) >"$work/killed.log" &
    running=$!
    shows "$work/killed.log" measuring || return 1
    sleep 3
    refused run busy 1 --workers 10.78.0.11 --secret-file "$work/token" >"$work/busy.log"
    kill -KILL "${worker_pids[3]}"
    wait "$running" || code=$?
    [ $code -eq 1 ] || { cat "$work/killed.log"; return 1; }
    holds killed '[$run.workers[] | select(.lost != null) | .name] == ["w3"]' && holds killed '$run.total.interrupted' &&
        holds killed '$run.workers[2].lost | test("after the start")' && holds killed '$run.workers[2].operations > 0' &&
        holds killed '$run.total.total.operations == ([$run.workers[] | select(.lost == null) | .operations] | add)' &&
        holds killed '$step.notes | any(test("worker w3 was lost .* 12.5 % of the load"))' &&
        holds killed '$step.summary.iops.median > 0' && grep -q 'worker w3 was lost' "$work/killed.html"
}

# complains NAME WORDS: that run said so.
complains() {
    cat "$work/$1.log"
    grep -q -e "$2" "$work/$1.log"
}

others_were_told_busy() { complains busy 'busy with another coordinator'; }

wrong_token_is_refused() {
    head -c 32 /dev/urandom | base64 >"$work/wrong"
    chmod 600 "$work/wrong"
    refused run wrong 1 --workers 10.78.0.11 --secret-file "$work/wrong" >"$work/wrong.log"
    complains wrong 'the secret differs from that of this worker'
}

# The coordinator is killed in mid-run: workers stop, and serve the next one.
coordinator_killed() {
    local running
    "$WEIR" bench run "$work/job-15.fio" "$target" --workers 10.78.0.11,10.78.0.12 --secret-file "$work/token" \
        >"$work/orphans.log" 2>&1 &
    running=$!
    shows "$work/orphans.log" measuring || return 1
    kill -KILL "$running"
    wait "$running"
    shows "$work/w1.log" 'lost the coordinator' && shows "$work/w2.log" 'lost the coordinator' &&
        run next 1 --workers 10.78.0.11,10.78.0.12 --secret-file "$work/token" &&
        holds next '($run.workers | length) == 2'
}

# What stands for ssh: the command of the last word, in the namespace of the word before it.
by_ssh() {
    cat >"$work/ssh" <<'END'
#!/bin/bash
while [ "$1" != -- ]; do shift; done
exec ip netns exec "$2" sh -c "$3"
END
    chmod +x "$work/ssh"
    run ssh 1 --worker a=ssh:w4 --worker ssh:w5 --ssh "$work/ssh" --worker-program "$WEIR" &&
        holds ssh '[$run.workers[].name] == ["a", "w5"]' && holds ssh '[$run.workers[].operations] | min > 0'
}

by_ssh_in_vain() {
    refused run vain 1 --worker ssh:nowhere --ssh "$work/ssh" --worker-program "$WEIR" >"$work/vain.log"
    complains vain 'worker nowhere: .*its message: .*nowhere'
}

on_this_machine() { run local 1 --local-workers 3 && holds local '($run.workers | length) == 3'; }

workers_end_on_request() {
    kill -TERM "${worker_pids[1]}" && wait "${worker_pids[1]}"
}

network || exit 1
serve || exit 1
head -c 32 /dev/urandom | base64 >"$work/token"
chmod 600 "$work/token"
for seconds in 1 5 15; do
    job $seconds
done
for number in $(seq $workers); do
    start_worker "$number" || exit 1
done
check eight-workers-are-the-sum eight_are_the_sum
check nothing-is-left nothing_is_left
check one-killed-is-marked one_killed_is_marked
check others-are-told-busy others_were_told_busy
check wrong-token-is-refused wrong_token_is_refused
check a-killed-coordinator-is-survived coordinator_killed
check workers-by-ssh by_ssh
check ssh-that-fails-is-told by_ssh_in_vain
check workers-on-this-machine on_this_machine
check workers-end-on-request workers_end_on_request
check server-stops-on-request stop_server TERM
exit $failed
