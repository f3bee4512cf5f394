# shellcheck shell=bash
# Functions that the scripts share.  Sourced, never run.
#
#   log TEXT…                  say on stderr what is being done
#   die TEXT…                  say what is wrong and end with status 1
#   need_packages PKG…         have these Debian packages installed
#   fetch_source NAME VERSION  print the path of the verified upstream tarball
#   fetch_debian_part NAME VERSION  print the path of Debian's own part of it
#   hash_inputs PATH…          print one hash over the contents of files and folders
#   free_port [COUNT]          print TCP ports of loopback that are free now
#
# Downloads and builds live below $SSHFLOW_TARGET (default: target/ of the tree).

SSHFLOW_ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
SSHFLOW_TARGET=${SSHFLOW_TARGET:-$SSHFLOW_ROOT/target}

log() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { log "error: $*"; exit 1; }

# True if every package given is installed.
_installed() {
	local pkg
	for pkg in "$@"; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$pkg" 2>/dev/null) == installed ]] ||
			return 1
	done
}

need_packages() {
	local pkg as_root=() missing=() apt
	command -v dpkg-query >/dev/null ||
		die "this is not a Debian system: please install what these Debian packages hold: $*"
	for pkg in "$@"; do _installed "$pkg" || missing+=("$pkg"); done
	((${#missing[@]})) || return 0
	if ((EUID != 0)); then
		sudo -n true 2>/dev/null || die "please install: apt-get install ${missing[*]}"
		as_root=(sudo -n)
	fi
	log "installing ${missing[*]}"
	apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
		-o DPkg::Lock::Timeout=300)
	# Package lists may be missing or out of date: then fetch them and try again.
	"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2 2>/dev/null ||
		{ "${apt[@]}" update </dev/null >&2 &&
			"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2; } ||
		die "could not install ${missing[*]}"
}

# Source packages are looked up through a configuration of our own, so that the
# system's is neither changed nor needed to have deb-src lines.
_private_apt() {
	local dir=$SSHFLOW_TARGET/src/apt mirror suite
	# shellcheck disable=SC2016 # apt's own variables
	mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $3; exit }')
	[[ -n $mirror ]] || die "apt knows no Debian mirror: run apt-get update first"
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	for suite in bookworm trixie sid experimental; do
		printf 'deb-src [signed-by=%s] %s %s main\n' \
			/usr/share/keyrings/debian-archive-keyring.gpg "$mirror" "$suite"
	done >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir/cache";
		APT::Sandbox::User "root";
	CONF
	export APT_CONFIG=$dir/apt.conf
}

# Prints the Debian version of source package $1 that holds file $2.
_source_version() {
	apt-cache showsrc "$1" 2>/dev/null |
		awk -v file="$2" '/^Version:/ { v = $2 } $3 == file { found = v } END { print found }'
}

_download_source() (
	name=$1 file=$2
	need_packages dpkg-dev ca-certificates debian-archive-keyring
	log "fetching $file from Debian's source packages"
	_private_apt
	version=$(_source_version "$name" "$file")
	if [[ -z $version ]]; then
		apt-get -qq update </dev/null >&2 || die "could not fetch the lists of source packages"
		version=$(_source_version "$name" "$file")
	fi
	[[ -n $version ]] ||
		die "$file is no longer in Debian's archive: put it into $SSHFLOW_TARGET/src by hand"
	cd "$SSHFLOW_TARGET/src" || exit
	apt-get -qq source --download-only --tar-only "$name=$version" </dev/null >&2 ||
		die "could not download $file"
)

# The tarball's name and hash stand in sources.sha256; nothing else is accepted.
fetch_source() {
	local name=$1 version=$2 dir=$SSHFLOW_TARGET/src sum file
	read -r sum file < <(grep -F " ${name}_$version.orig.tar." \
		"$SSHFLOW_ROOT/scripts/sources.sha256") ||
		die "$name $version is not listed in scripts/sources.sha256"
	mkdir -p "$dir"
	(
		flock 9
		[[ -e $dir/$file ]] || _download_source "$name" "$file"
		echo "$sum  $dir/$file" | sha256sum --quiet --check - >&2 ||
			die "$dir/$file is not the file that scripts/sources.sha256 names: remove it and try again"
	) 9>"$dir/.lock" || exit 1
	printf '%s\n' "$dir/$file"
}

# Prints the path of the tarball with Debian's own packaging and patches.  It
# moves with Debian's security updates, so apt's signatures vouch for it.
fetch_debian_part() {
	local name=$1 version=$2 dir=$SSHFLOW_TARGET/src/debian
	mkdir -p "$dir"
	(
		need_packages dpkg-dev ca-certificates debian-archive-keyring
		_private_apt
		apt-get -qq update </dev/null >&2 || die "could not fetch the lists of source packages"
		version=$(_source_version "$name" "$(basename -- "$(fetch_source "$name" "$version")")")
		cd "$dir" || exit
		apt-get -qq source --download-only --debian-only "$name=$version" </dev/null >&2 ||
			die "could not download Debian's patches for $name $version"
		printf '%s\n' "$dir/${name}_${version#*:}.debian.tar.xz"
	) || exit 1
}

hash_inputs() {
	local path
	for path in "$@"; do
		find "$path" -type f -print0
	done | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
}

free_port() {
	python3 - "${1:-1}" <<-'PY'
		import socket, sys
		socks = [socket.socket() for _ in range(int(sys.argv[1]))]
		for s in socks:
		    s.bind(("127.0.0.1", 0))
		for s in socks:
		    print(s.getsockname()[1])
	PY
}
