# Creates a private PostgreSQL cluster, and removes it after the test process has ended.
# Arguments: directory, program directory, port, then the command prefix that runs a command as the cluster's owner.
# Prints `ready` on stdout. The end of stdin means that the test process has ended, for any reason.
directory=$1 programs=$2 port=$3
shift 3

# Ctrl-C and a closed terminal end the test process, and the end of stdin then ends this script. A closed reader of
# stdout must not end it either.
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

# Durable as in production, because the tests are about commits; small, because many may run on one machine.
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
