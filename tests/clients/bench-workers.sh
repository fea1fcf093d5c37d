#!/bin/bash
# Load from several machines: eight workers, each in a network namespace of its own, on a bridge with
# a server in a ninth and the coordinator in front. Two scripts stand in for ssh: one enters a
# namespace, and one speaks with a process there over a TCP connection, which can be cut.
set -u
here=$(dirname "$(realpath -e "$0")")
if [ "${1:-}" != inside ]; then
    exec "$here/sandbox" "$0" inside
fi
# shellcheck source=suite.bash
. "$here/suite.bash"

target=nfs://10.78.0.1/vol
workers=8

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

# stand_in_for_ssh: writes a script that runs the command, its last word, in the namespace of the word
# before, and keeps the process id in a file of that name.
stand_in_for_ssh() {
    cat >"$work/ssh" <<END
#!/bin/bash
while [ "\$1" != -- ]; do shift; done
echo \$\$ >"$work/\$2.pid"
case "\$3" in *"&&"*) run=\$3 ;; *) run="exec \$3" ;; esac
exec ip netns exec "\$2" sh -c "\$run"
END
    chmod +x "$work/ssh"
}

# stand_in_over_tcp: writes a script that runs the command, its last word, in the namespace of the word before, and carries its input and
# output over the network. The process there lives on when the script is killed, and its process id is kept in a file of that name.
stand_in_over_tcp() {
    cat >"$work/far" <<END
#!/usr/bin/env python3
import os, socket, subprocess, sys, threading

host, command = sys.argv[-2:]
listener = socket.create_server(("10.78.0.254", 0))
connect = "exec 3<>/dev/tcp/10.78.0.254/%d && exec sh -c \"\$1\" <&3 >&3 3>&-" % listener.getsockname()[1]
child = subprocess.Popen(
    ["ip", "netns", "exec", host, "bash", "-c", connect, "far", "exec " + command],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
with open("$work/%s.pid" % host, "w") as file:
    file.write(str(child.pid))
peer = listener.accept()[0]

def there():
    while data := os.read(0, 65536):
        peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)

threading.Thread(target=there, daemon=True).start()
while data := peer.recv(65536):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
END
    chmod +x "$work/far"
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

# over_ssh WORKER...: the options that start these workers.
over_ssh() {
    echo "--ssh $work/ssh --worker-program $WEIR"
    for worker in "$@"; do
        echo "--worker $worker"
    done
}

# over_tcp WORKER...: the same over TCP connections.
over_tcp() {
    echo "--ssh $work/far --worker-program $WEIR"
    printf -- '--worker ssh:%s\n' "$@"
}

all_workers() {
    # shellcheck disable=SC2046
    over_ssh $(seq -f 'ssh:w%g' $workers)
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

# gone NAME: nothing of that run is on the server.
gone() {
    refused run "$1" 1 --reuse >"$work/gone.log"
    complains gone NOENT
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
    kill -KILL "$(cat "$work/w3.pid")"
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

# ends WORKER: returns when its process has ended.
ends() {
    for _ in $(seq 600); do
        kill -0 "$(cat "$work/$1.pid")" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

# The coordinator is killed during the run: its workers stop and exit.
coordinator_killed() {
    local running
    # shellcheck disable=SC2046
    "$WEIR" bench run "$work/job-15.fio" "$target" $(over_ssh ssh:w1 ssh:w2) >"$work/orphans.log" 2>&1 &
    running=$!
    shows "$work/orphans.log" measuring || return 1
    kill -KILL "$running"
    wait "$running"
    ends w1 && ends w2
}

# The next run on this machine removes what the killed one left.
killed_run_is_cleared() {
    "$WEIR" bench run "$work/job-1.fio" "$target" >"$work/cleared.log" 2>&1 || { cat "$work/cleared.log"; return 1; }
    complains cleared 'that of a killed run (process'
}

# A run by one process is killed: its files stay, and the next run on this machine removes them and says so.
one_process_killed() {
    local running
    "$WEIR" bench run "$work/job-15.fio" "$target" --dir alone >"$work/alone.log" 2>&1 &
    running=$!
    shows "$work/alone.log" measuring || return 1
    kill -KILL "$running"
    wait "$running"
    run alone 1 --reuse || return 1
    run alone 1 >"$work/again.log" || { cat "$work/again.log"; return 1; }
    complains again "that of a killed run (process $running)" && gone alone
}

# A worker that is stopped by a signal reports its measurements until then.
one_stopped_is_counted() {
    local code=0 running
    # shellcheck disable=SC2046
    run stopped 15 $(over_ssh ssh:w1 ssh:w2) >"$work/stopped.log" &
    running=$!
    shows "$work/stopped.log" measuring || return 1
    sleep 2
    kill -TERM "$(cat "$work/w1.pid")"
    wait "$running" || code=$?
    [ $code -eq 1 ] || { cat "$work/stopped.log"; return 1; }
    ends w1 && holds stopped '$run.workers[0].lost | test("asked to stop")' && holds stopped '$run.workers[0].operations > 0' &&
        holds stopped '$run.total.total.operations == ([$run.workers[].operations] | add)'
}

names_of_workers() {
    # shellcheck disable=SC2046
    run names 1 $(over_ssh a=ssh:w4 ssh:w5) && holds names '[$run.workers[].name] == ["a", "w5"]' &&
        holds names '[$run.workers[].operations] | min > 0'
}

ssh_that_fails() {
    # shellcheck disable=SC2046
    refused run vain 1 $(over_ssh ssh:nowhere) >"$work/vain.log"
    complains vain 'worker nowhere: .*its message: .*nowhere'
}

on_this_machine() { run local 1 --local-workers 3 && holds local '($run.workers | length) == 3'; }

# many NAME CLIENTS OPTION...: the same load by so many clients, from this machine.
many() {
    local name=$1 clients=$2
    shift 2
    cat >"$work/$name.toml" <<END
[[step]]
name = "many"
clients = $clients
jobs = $clients
connections = 2
depth = 4
block = "8KiB"
size = "1MiB"
files = $clients
time = "1s"
warmup = "0s"
END
    "$WEIR" bench run "$work/$name.toml" "$target" --dir "$name" "$@" --json "$work/$name.json" 2>&1
}

# Six clients from the one address of this machine, which is not a loopback address.
clients_share_an_address() {
    many shared 6 --dry-run && many shared 6 || return 1
    holds shared '$run.total.connections.opened == 12' && holds shared '$run.total.total.operations > 0' &&
        holds shared '[$run.total.jobs[].client] == ["client-1", "client-2", "client-3", "client-4", "client-5", "client-6"]' &&
        holds shared '$step.notes | any(test("6 simulated clients share the one source address"))'
}

clients_have_addresses() {
    ip addr add 10.78.0.201/24 dev lan && ip addr add 10.78.0.202/24 dev lan || return 1
    many own 2 --source 10.78.0.201,10.78.0.202 && holds own '[$run.total.jobs[].client] == ["10.78.0.201", "10.78.0.202"]' &&
        holds own '$step.notes | all(test("share") | not)' || return 1
    refused many foreign 2 --source 10.78.0.99 --dry-run >"$work/foreign.log"
    complains foreign '10.78.0.99 does not belong to this machine'
}

# vdbench NAME LINE...: a parameter file of two hosts with a volume each.
vdbench() {
    local name=$1
    shift
    cat >"$work/$name.vdb" <<END
hd=default,shell=ssh$1
hd=hd1,system=w1
hd=hd2,system=w2
sd=sd1,host=hd1,lun=/mnt/one/file,size=1m,threads=4,openflags=o_direct
sd=sd2,host=hd2,lun=/mnt/two/file,size=1m,threads=4,openflags=o_direct
wd=wd1,sd=sd1,host=hd1,xfersize=8k,rdpct=70
wd=wd2,sd=sd2,host=hd2,xfersize=8k,rdpct=70
rd=rd1,wd=wd*,iorate=max,elapsed=1,interval=1
END
}

# The hosts of the file start as workers, each on a volume of its own.
hosts_of_a_file() {
    weir volume create two --pool main --quota 1TiB && weir export add two --network 10.78.0.0/24 --access rw --squash none || return 1
    vdbench hosts ""
    "$WEIR" bench run "$work/hosts.vdb" --map "/mnt/one:=$target" --map /mnt/two:=nfs://10.78.0.1/two \
        --ssh "$work/ssh" --worker-program "$WEIR" --json "$work/hosts.json" 2>&1 || return 1
    holds hosts '[$run.workers[].name] == ["hd1", "hd2"]' && holds hosts '[$run.workers[].operations] | min > 0' &&
        holds hosts '[$run.targets[].name] == ["nfs://10.78.0.1/two", "nfs://10.78.0.1/vol"]' &&
        holds hosts '$run.total.total.operations == ([$run.targets[].total.operations] | add)' &&
        holds hosts '[$run.targets[].total.operations] | min > 0'
}

unknown_hosts() {
    vdbench evil ",user=-evil"
    refused "$WEIR" bench run "$work/evil.vdb" "$target" --dry-run >"$work/evil.log" 2>&1
    complains evil 'evil.vdb:1: user: "-evil" is not a user' || return 1
    vdbench unknown "" && sed -i 's/,system=w.$//' "$work/unknown.vdb"
    refused "$WEIR" bench run "$work/unknown.vdb" "$target" --dry-run >"$work/unknown.log" 2>&1
    complains unknown '--worker hd1=ssh:' || return 1
    "$WEIR" bench run "$work/unknown.vdb" "$target" --local-workers 2 --json "$work/here.json" 2>&1 &&
        holds here '[$run.workers[].name] == ["local-1", "local-2"]' && holds here '[$run.workers[].operations] | min > 0'
}

# The machines have no program of their own.
copied_program() {
    run copied 1 --ssh "$work/ssh" --worker ssh:w1 --worker ssh:w2 --copy-program && holds copied '($run.workers | length) == 2' &&
        holds copied '[$run.workers[].operations] | min > 0' && ! ls "${TMPDIR:-/tmp}"/weir-worker.* 2>/dev/null
}

# A worker whose process is stopped: its connections to the server and to the coordinator stay open, and nothing comes.
silent_worker_is_lost() {
    local code=0 running
    # shellcheck disable=SC2046
    run silent 30 $(over_tcp w1 w2) >"$work/silent.log" &
    running=$!
    shows "$work/silent.log" measuring || return 1
    kill -STOP "$(cat "$work/w2.pid")"
    wait "$running" || code=$?
    kill -CONT "$(cat "$work/w2.pid")"
    [ $code -eq 1 ] || { cat "$work/silent.log"; return 1; }
    ends w2 && holds silent '[$run.workers[] | select(.lost != null) | .name] == ["w2"]' &&
        holds silent '$run.workers[1].lost | test("nothing was heard")' && holds silent '$run.total.interrupted' && gone silent
}

# cut WORKER [ADDRESS]: what the worker's machine sends, and what is sent to it, vanishes: all of it, or to and from the address.
cut() {
    local from="${2:+ip saddr $2}" to="${2:+ip daddr $2}"
    ip netns exec "$1" nft -f - <<END
table inet cut {
    chain in { type filter hook input priority 0; iifname eth0 $from counter drop; }
    chain out { type filter hook output priority 0; oifname eth0 $to counter drop; }
}
END
}

mend() { ip netns exec "$1" nft delete table inet cut; }

# The link between a worker and the coordinator is cut in mid-run: the worker notices, stops and exits, though its load would
# last for minutes; the coordinator names it and removes all files.
cut_from_the_coordinator() {
    local code=0 running
    # shellcheck disable=SC2046
    "$WEIR" bench run "$work/job-600.fio" "$target" --dir cut $(over_tcp w1 w2) --json "$work/cut.json" >"$work/cut.log" 2>&1 &
    running=$!
    shows "$work/cut.log" measuring && cut w2 10.78.0.254 && ends w2 && mend w2 || return 1
    # The other worker continues until the run is stopped.
    kill -0 "$(cat "$work/w1.pid")" && kill -TERM "$running" || return 1
    wait "$running" || code=$?
    [ $code -eq 1 ] || { cat "$work/cut.log"; return 1; }
    holds cut '[$run.workers[] | select(.lost != null) | .name] == ["w2"]' &&
        holds cut '$run.workers[1].lost | test("after the start: nothing was heard")' &&
        holds cut '$run.workers[0].operations > 0' && ends w1 && gone cut
}

# lost_alone NAME BREAK MEND: a run of minutes by the worker w2, which BREAK makes unreachable in mid-run, and MEND reachable again when
# the coordinator has given it up. The coordinator ends, names the worker and removes its files; the worker does not continue its load
# afterwards, but exits.
lost_alone() {
    local name=$1 code=0 running
    # shellcheck disable=SC2046
    run "$name" 600 $(over_tcp w2) >"$work/$name.log" &
    running=$!
    shows "$work/$name.log" measuring && $2 || return 1
    wait "$running" || code=$?
    [ $code -eq 1 ] && gone "$name" && $3 && ends w2 && gone "$name" &&
        complains "$name" 'all workers were lost: worker w2: .*nothing was heard'
}

stop_w2() { kill -STOP "$(cat "$work/w2.pid")"; }
continue_w2() { kill -CONT "$(cat "$work/w2.pid")"; }

# The link of a worker to the server fails for a while: its requests wait, and the worker is not lost.
link_fails() {
    # shellcheck disable=SC2046
    run link 15 $(over_ssh ssh:w1 ssh:w2) >"$work/link.log" &
    running=$!
    shows "$work/link.log" measuring || return 1
    ip link set w1 down && sleep 2 && ip link set w1 up || return 1
    wait "$running" || { cat "$work/link.log"; return 1; }
    holds link '[$run.workers[].lost] | all(. == null)' && holds link '$run.total.total.latency_ms.max > 1000'
}

removed_options() {
    refused run removed 1 --workers 10.78.0.11 --secret-file "$work/token" >"$work/removed.log"
    complains removed '--worker ssh:\[USER@\]HOST' || return 1
    refused "$WEIR" bench worker --listen 10.78.0.11 --secret-file "$work/token" >"$work/removed.log" 2>&1
    complains removed '--worker ssh:\[USER@\]HOST'
}

network || exit 1
serve || exit 1
stand_in_for_ssh
stand_in_over_tcp
for seconds in 1 5 15 30 600; do
    job $seconds
done
check eight-workers-are-the-sum eight_are_the_sum
check nothing-is-left gone sum
check one-killed-is-marked one_killed_is_marked
check one-stopped-is-counted one_stopped_is_counted
check workers-end-with-a-killed-coordinator coordinator_killed
check files-of-a-killed-run-are-removed killed_run_is_cleared
check files-of-a-killed-process-are-removed one_process_killed
check workers-have-names names_of_workers
check ssh-that-fails-is-quoted ssh_that_fails
check workers-on-this-machine on_this_machine
check clients-share-an-address clients_share_an_address
check clients-have-addresses clients_have_addresses
check hosts-of-a-file-are-workers-on-two-volumes hosts_of_a_file
check hosts-that-nobody-knows-are-refused unknown_hosts
check program-is-copied copied_program
check silent-worker-is-lost silent_worker_is_lost
check link-to-the-coordinator-is-cut cut_from_the_coordinator
check link-is-cut-and-mended lost_alone severed "cut w2" "mend w2"
check process-is-stopped-and-continued lost_alone halted stop_w2 continue_w2
check link-that-fails-for-a-while link_fails
check removed-options-say-what-to-use removed_options
check server-stops-on-request stop_server TERM
exit $failed
