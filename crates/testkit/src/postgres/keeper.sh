# Makes a private PostgreSQL cluster, then outlives the test process just long enough to remove it.
# Arguments: directory, program directory, port, then the words that run a command as the cluster's owner.
# Says `ready` on standard output. The end of standard input is the end of the test process, however it came.
directory=$1 programs=$2 port=$3
shift 3

# Ctrl-C and a closed terminal end the test process, which ends us by way of standard input. A reader that is gone
# must not end us either.
trap '' INT HUP PIPE

finish() {
    "$@" "$programs/pg_ctl" stop -D "$directory/data" -m immediate -w </dev/null >/dev/null 2>&1
    rm -rf "$directory"
}
trap 'finish "$@"; exit 1' TERM

give_up() {
    cat "$directory/log"
    finish "$@"
    exit 1
}

cd "$directory" || exit 1
"$@" "$programs/initdb" -D "$directory/data" --username=drydock --auth=trust --encoding=UTF8 --locale=C --no-sync \
    </dev/null >"$directory/log" 2>&1 || give_up "$@"

# Durable as in production, since commits are what the tests are about; small, since many may run on one machine.
cat >>"$directory/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 200
shared_buffers = 16MB
fsync = on
CONF

"$@" "$programs/pg_ctl" start -D "$directory/data" -l "$directory/data/server.log" -w -t 60 \
    </dev/null >>"$directory/log" 2>&1 || {
    cat "$directory/data/server.log" >>"$directory/log"
    give_up "$@"
}

echo ready
while read -r _; do :; done
finish "$@"
