#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a file names, one a line; does nothing when all are there, so
# that a base which has them needs no network.
#
#   install_packages.sh FILE
set -eu
wanted=$(sed 's/#.*//' "$1")
missing=
for package in $wanted; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing$missing"
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
rm -rf /var/lib/apt/lists/*
