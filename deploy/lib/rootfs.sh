# deploy/lib/rootfs.sh
# Makes a bare Debian 12 root folder by debootstrap, which reaches the package registries the way
# this machine does: its apt mirror, its own certificates, its settings of pip and cargo. To be
# sourced after scripts/lib/common.sh.
# shellcheck shell=bash

SUITE=bookworm
# Variables by which clients of the registries are told their way.
CARRIED='^(https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|PIP_(EXTRA_)?INDEX_URL|PIP_TRUSTED_HOST'
CARRIED+='|PIP_DEFAULT_TIMEOUT|CARGO_(HTTP|NET|REGISTRIES)_[A-Z_]+)$'

# The mirror that this machine's apt uses; empty: debootstrap's own.
apt_mirror() {
  { awk '$1 == "URIs:" { print $2 }' /etc/apt/sources.list.d/debian.sources
    awk '$1 == "deb" { print $2 }' /etc/apt/sources.list; } 2>/dev/null | head -n 1 || true
}

# make_rootfs FOLDER [PACKAGE,PACKAGE...]
make_rootfs() {
  local folder=$1 mirror
  mirror=$(apt_mirror)
  [[ -x $(type -P debootstrap) ]] || die "debootstrap is missing: apt-get install debootstrap"
  step "making a bare Debian 12" debootstrap debootstrap --variant=minbase \
    ${2:+--include="$2"} "$SUITE" "$folder" ${mirror:+"$mirror"}
  carry_over "$folder"
}

# Only how registries are reached, no tool and no package.
carry_over() {
  local folder=$1 file
  rm -f "$folder/etc/apt/sources.list"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/resolv.conf \
              /etc/hosts /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.cargo/config.toml"; do
    if [[ -s $file ]]; then install -D -m 644 "$(readlink -f "$file")" "$folder/$file"; fi
  done
  for file in /usr/local/share/ca-certificates/*.crt; do
    if [[ -s $file ]]; then install -D -m 644 "$file" "$folder/$file"; fi
  done
  if [[ -x $folder/usr/sbin/update-ca-certificates ]]; then
    step "trusting this machine's certificates" ca chroot "$folder" update-ca-certificates
  fi
}

carried_variables() {
  env -0 | while IFS= read -r -d '' pair; do
    if [[ ${pair%%=*} =~ $CARRIED ]]; then printf '%s\0' "$pair"; fi
  done
}
