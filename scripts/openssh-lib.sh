# shellcheck shell=bash
# Servers and clients of our own builds on loopback, for the tests.  Sourced
# after lib.sh.
#
#   test_begin                       a scratch folder in $scratch, removed at the end
#   sshd_start NAME PREFIX [LINE…]   a server of the build in PREFIX; LINE… go to
#                                    its sshd_config; its port is in $sshd_port.
#                                    It listens on $sshd_address
#                                    (loopback), and the command in the array
#                                    $sshd_at, if any, runs it
#   sshd_stop NAME                   ends it
#   ssh_options NAME                 sets the array $ssh_to: options that reach it

sshd_at=() sshd_address=127.0.0.1

test_begin() {
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/sshflow.XXXXXX")
	chmod 755 "$scratch"
	trap test_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

test_end() {
	local pidfile
	for pidfile in "$scratch"/*.pid; do
		[[ -e $pidfile ]] && kill "$(<"$pidfile")" 2>/dev/null
	done
	rm -rf "$scratch"
}

# One key pair serves as host key and as user key everywhere.
_test_keys() {
	[[ -e $scratch/key ]] && return
	ssh-keygen -q -t ed25519 -N '' -C sshflow-test -f "$scratch/key" ||
		die "ssh-keygen failed"
	cp "$scratch/key.pub" "$scratch/authorized_keys"
	printf 'sshflow-test %s\n' "$(cut -d' ' -f1,2 "$scratch/key.pub")" >"$scratch/known_hosts"
}

sshd_start() {
	local name=$1 prefix=$2 config tries
	shift 2
	_test_keys
	config=$scratch/$name.conf
	sshd_port=$(free_port 1)
	{
		# sshd takes the first line of a keyword.
		[[ $# == 0 ]] || printf '%s\n' "$@"
		printf '%s\n' "ListenAddress $sshd_address" "Port $sshd_port" \
			"HostKey $scratch/key" "AuthorizedKeysFile $scratch/authorized_keys" \
			"PidFile $scratch/$name.pid" "StrictModes no" "UsePAM no" \
			"PermitRootLogin yes" "UseDNS no" "LogLevel VERBOSE" \
			"Subsystem sftp internal-sftp"
	} >"$config"
	"${sshd_at[@]}" "$prefix/sbin/sshd" -f "$config" -E "$scratch/$name.log" ||
		{ cat "$scratch/$name.log" >&2; die "sshd of $prefix does not start"; }
	for ((tries = 0; tries < 100; tries++)); do
		[[ -s $scratch/$name.pid ]] && break
		sleep 0.05
	done
	printf '%s\n' "$sshd_port" >"$scratch/$name.port"
}

sshd_stop() {
	local pidfile=$scratch/$1.pid pid
	[[ -e $pidfile ]] || return 0
	pid=$(<"$pidfile")
	kill "$pid" 2>/dev/null
	while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
	rm -f "$pidfile"
}

ssh_options() {
	# shellcheck disable=SC2034 # used by those who call this
	ssh_to=(-F /dev/null -i "$scratch/key" -o BatchMode=yes -o IdentitiesOnly=yes
		-o IdentityAgent=none -o HostKeyAlias=sshflow-test
		-o "UserKnownHostsFile=$scratch/known_hosts" -o GlobalKnownHostsFile=/dev/null
		-o "Port=$(<"$scratch/$1.port")")
}
