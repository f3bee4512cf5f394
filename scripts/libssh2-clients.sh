#!/usr/bin/env bash
# What libssh2-interop does against one server: libssh2-clients.sh NAME WORK.
# Runs inside the server's namespaces, as root; files reach the server's user
# through its home.
set -euo pipefail

server=$1 work=$2
home=/run/libssh2/home
port=4711
export LD_LIBRARY_PATH=$LIBSSH2_CLIENT_LIBRARIES
cp "$work/text" "$work/random" $home/
passed=0 failed=0

verdict() {
	local method=$1 what=$2 word=same
	if [[ $3 == "$4" ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		word=DIFFERS
	fi
	printf '%-9s %-17s %-22s %s\n' "$server" "$method" "$what" "$word"
}

sum_of() { sha256sum <"$1" | cut -d' ' -f1; }

# transfer MODE FILE BEHIND METHOD: see libssh2-transfer.c
transfer() {
	timeout 100 "$work/transfer" "$1" 127.0.0.1 $port libssh2 "$work/key_ed25519" "$2" 65536 "$3" \
		"$4,none" 2>>"$work/errors" || true
}

by_the_library() {
	local method got file sum behind
	for method in none zlib zlib@openssh.com zstd@sshflow.org; do
		got=$(transfer exec true 0 "$method")
		# the server's direction: Dropbear has no other
		if [[ $(cut -d' ' -f4 <<<"$got") != "$method" ]]; then
			printf '%-9s %-17s %s\n' "$server" "$method" 'not known to this server'
			continue
		fi
		for file in text random; do
			sum=$(sum_of $home/$file)
			verdict "$method" "exec $file" "$(transfer exec "cat $file" 0 "$method" | cut -d' ' -f3)" "$sum"
			verdict "$method" "scp $file" "$(transfer scp $file 0 "$method" | cut -d' ' -f3)" "$sum"
			verdict "$method" "sftp get $file" "$(transfer get $file 0 "$method" | cut -d' ' -f3)" "$sum"
			for behind in 0 300000; do
				transfer put copy $behind "$method" <"$work/$file" >/dev/null
				verdict "$method" "sftp put $file${behind/#0/}" "$(sum_of $home/copy)" "$sum"
				rm -f $home/copy
			done
		done
	done
}

by_curl() {
	local protocol option file method curl
	for option in '' --compressed-ssh; do
		method=curl
		curl=(curl -sS --max-time 100 --insecure --key "$work/key_ed25519" --pubkey "$work/key_ed25519.pub")
		[[ -z $option ]] || { curl+=("$option"); method='curl compressed'; }
		for protocol in sftp scp; do
			for file in text random; do
				verdict "$method" "$protocol get $file" \
					"$("${curl[@]}" "$protocol://libssh2@127.0.0.1:$port$home/$file" 2>>"$work/errors" |
						sha256sum | cut -d' ' -f1)" "$(sum_of $home/$file)"
				"${curl[@]}" -T "$work/$file" "$protocol://libssh2@127.0.0.1:$port$home/copy" \
					2>>"$work/errors" || true
				verdict "$method" "$protocol put $file" "$(sum_of $home/copy)" "$(sum_of $home/$file)"
				rm -f $home/copy
			done
		done
	done
}

by_git() {
	rm -rf $home/repo.git "$work/clone" "$work/origin"
	git init -q "$work/origin"
	cp "$work/text" "$work/random" "$work/origin/"
	git -C "$work/origin" add .
	git -C "$work/origin" -c user.name=test -c user.email=test@localhost commit -qm 'A text and random data'
	git clone -q --bare "$work/origin" $home/repo.git
	# git reads only what belongs to its user, and AsyncSSH runs as root
	[[ $server == asyncssh ]] || chown -R libssh2: $home/repo.git
	/usr/bin/python3 "$work/libssh2-clients.py" "ssh://libssh2@127.0.0.1:$port$home/repo.git" \
		"$work/clone" "$work/key_ed25519" 2>>"$work/errors" || true
	verdict libgit2 'clone' "$(git -C "$work/clone" rev-parse HEAD 2>/dev/null)" \
		"$(git -C "$work/origin" rev-parse HEAD)"
	verdict libgit2 'file of the clone' "$(sum_of "$work/clone/random" 2>/dev/null)" "$(sum_of "$work/random")"
}

by_php() {
	verdict PHP 'sftp get text' \
		"$(php "$work/libssh2-clients.php" $port "$work/key_ed25519" $home/text 2>>"$work/errors" |
			sha256sum | cut -d' ' -f1)" "$(sum_of $home/text)"
}

# A server that does not re-key would show little.
rekeys() {
	local count
	case $server in
	openssh | patched) count=$(grep -c 'SSH2_MSG_NEWKEYS sent' "$LIBSSH2_SSHD_LOG" || true) ;;
	asyncssh) count=$(grep -c 'Completed key exchange' "$LIBSSH2_SSHD_LOG" || true) ;;
	*) return ;;
	esac
	printf '%-9s %s key exchanges\n' "$server" "$count"
	if ((count < 100)); then
		failed=$((failed + 1))
		printf '%-9s fewer than the 100 that were expected\n' "$server"
	fi
}

: >"$work/errors"
by_the_library
by_curl
by_git
by_php
rekeys
printf '%-9s %s passed, %s failed\n' "$server" "$passed" "$failed"
((failed == 0 && passed > 0)) || { sort "$work/errors" | uniq -c | tail -20 >&2; exit 1; }
