#!/usr/bin/env bash
# Makes the environments of the systems that Tandem is measured and tested against.
#
# usage: bench/peers/setup.sh [NAME ...]   NAME: tensorflow, torch, jax, stores, tensorboard, cuda;
# all without arguments
#
# Each lands in build/peers/NAME with the versions of tests/peers.txt. What is there already is left
# alone and needs no network. One line per environment on stderr; the installer's own words are in
# build/peers/NAME.log.
# Exit codes: 0 all are ready, 1 an installation failed, 2 wrong usage, 3 the package index can't be
# reached.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
pins=$root/tests/peers.txt
home=$root/build/peers

say() { echo "peers: $*" >&2; }

known() { sed -n 's/^\([a-z][a-z]*\) .*/\1/p' "$pins" | sort -u; }

# Debian keeps the part of Python that makes environments in a package of its own.
need_venv() {
  python3 -c 'import ensurepip, venv' 2>/dev/null && return 0
  say "installing python3-venv"
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get install -y -q python3-venv >"$home/venv.log" 2>&1 && return 0
  say "python3-venv is missing and could not be installed, see $home/venv.log"
  return 1
}

# How pip says that no index answered, as against an index without the package.
unreachable() {
  grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError|SSLError|ReadTimeout|Network is unreachable|from versions: none|Connection (refused|aborted|reset|broken)' "$1"
}

ready() {  # NAME: whether its environment holds exactly the pinned packages and starts
  [ -f "$home/$1/pinned" ] && [ "$(cat "$home/$1/pinned")" = "$(grep "^$1 " "$pins")" ] &&
    "$home/$1/bin/python" -c '' 2>/dev/null
}

install() {
  local name=$1 log=$home/$1.log env=$home/$1
  local whole=() bare=()
  local environment requirement option
  while read -r environment requirement option; do
    [ "$environment" = "$name" ] || continue
    if [ "${option:-}" = no-deps ]; then bare+=("$requirement"); else whole+=("$requirement"); fi
  done <"$pins"

  say "$name: installing ${whole[*]} ${bare[*]-}"
  : >"$log"
  if ! [ -x "$env/bin/python" ] || ! "$env/bin/python" -c '' 2>/dev/null; then
    need_venv || return 1
    rm -rf "$env"
    python3 -m venv "$env" >>"$log" 2>&1 || { say "$name: no environment, see $log"; return 1; }
  fi
  rm -f "$env/pinned"
  local pip=("$env/bin/python" -m pip install --progress-bar off --retries 2 --no-input
    --disable-pip-version-check)
  if ! "${pip[@]}" "${whole[@]}" >>"$log" 2>&1 ||
    { [ ${#bare[@]} -gt 0 ] && ! "${pip[@]}" --no-deps "${bare[@]}" >>"$log" 2>&1; }; then
    if unreachable "$log"; then
      say "$name: the package index can't be reached, not installed"
      return 3
    fi
    say "$name: installation failed, see $log"
    return 1
  fi
  if [ "$name" = torch ]; then
    local lib
    lib=$(echo "$env"/lib/python3*/site-packages/torch/lib)
    "$env/bin/python" "$root/bench/peers/cuda_stubs.py" "$lib" >>"$log" 2>&1 ||
      { say "$name: stand-ins for the CUDA libraries failed, see $log"; return 1; }
  fi
  if [ "$name" = cuda ]; then
    # Where the package puts it depends on the versions of Python and CUDA.
    (cd "$env" && ln -sf lib/python3*/site-packages/nvidia/cu*/bin/cuobjdump cuobjdump) ||
      { say "$name: no cuobjdump in its package"; return 1; }
  fi
  grep "^$name " "$pins" >"$env/pinned"
  say "$name: ready in ${env#"$root"/}"
}

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(known)
for name in "${names[@]}"; do
  if ! known | grep -qx -- "$name"; then
    say "no peer is called '$name'; there are $(known | xargs)"
    exit 2
  fi
done

mkdir -p "$home"
exec 9>"$home/.lock"  # one installation at a time
flock 9
worst=0
for name in "${names[@]}"; do
  if ready "$name"; then
    say "$name: ready in build/peers/$name"
    continue
  fi
  install "$name"
  code=$?
  # A failure outranks an index that can't be reached.
  if [ $code -eq 1 ] || { [ $code -ne 0 ] && [ $worst -eq 0 ]; }; then worst=$code; fi
done
exit $worst
