#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the file system of an image from an install tree: its programs, the shared libraries that
# they load, certificates, a user, the licences, and the list of packages (SPDX 2.3).
#
#   assemble.sh NAME VERSION INSTALL_TREE OUT [LIBRARIES]
#
# LIBRARIES is the root of a layer below OUT, whose libraries are not copied. They are CUDA's: of the driver's
# library they and nobody here has any.
#
# Runs in Debian's minimal userland as root. SOURCE_DATE_EPOCH (seconds) is every file's time.
# Fails when a library is missing or belongs to no package.
set -eu
name=$1 version=$2 tree=$3 out=$4 libraries=${5:-}
epoch=${SOURCE_DATE_EPOCH:-0}
doc=usr/share/doc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$out/usr/lib" "$out/usr/lib64" "$out/etc/ssl/certs"
mkdir -m 1777 "$out/tmp"
cp -R "$tree/." "$out/"
ln -s usr/lib "$out/lib"
ln -s usr/lib64 "$out/lib64"

# Every file that a program or a library of ours loads and that is not ours.
find "$out/usr/bin" "$out/usr/lib" ${libraries:+"$libraries"} -type f | sort >"$work/programs"
while read -r program; do
  LD_LIBRARY_PATH=${libraries:+$libraries/usr/lib/lambdadnn} ldd "$program" >>"$work/ldd" 2>&1 || true
done <"$work/programs"
[ -z "$libraries" ] || sed -i '/libcuda\.so\.1 => not found/d' "$work/ldd"
if grep 'not found' "$work/ldd" >&2; then
  echo "error: the libraries above are not in this stage; name their packages in images/${name#lambdadnn-}/packages" >&2
  exit 1
fi
sed -n -e 's/.*=> \(\/[^ ]*\) (.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' "$work/ldd" |
  grep -v "^$out/" | grep -v "^${libraries:-$out}/" | sort -u >"$work/libraries"

# The package of a file, under whichever of its names dpkg knows it (/lib is /usr/lib).
package_of() {
  file=$(readlink -f "$1")
  { dpkg-query -S "$file" || dpkg-query -S "${file#/usr}"; } 2>/dev/null | sed -n '1s/:.*//p'
}

while read -r library; do
  target=$(readlink -f "$(dirname "$library")")
  mkdir -p "$out$target"
  cp -L "$library" "$out$target/$(basename "$library")"
  package=$(package_of "$library")
  if [ -z "$package" ]; then
    echo "error: $library belongs to no package" >&2
    exit 1
  fi
  echo "$package" >>"$work/packages"
done <"$work/libraries"

cp -L /etc/ssl/certs/ca-certificates.crt "$out/etc/ssl/certs/"
echo ca-certificates >>"$work/packages"
sort -u "$work/packages" >"$work/sorted"

printf 'root:x:0:0::/:/none\nnonroot:x:65532:65532::/:/none\n' >"$out/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$out/etc/group"
echo 'hosts: files dns' >"$out/etc/nsswitch.conf"
# By this file NVIDIA's runtime knows the folder in which Debian's loader looks for the driver's libraries.
[ -z "$libraries" ] || cp /etc/debian_version "$out/etc/"

while read -r package; do
  mkdir -p "$out/$doc/$package"
  cp -L "/$doc/$package/copyright" "$out/$doc/$package/copyright"
done <"$work/sorted"
mkdir -p "$out/usr/share/common-licenses"
cp -LR /usr/share/common-licenses/. "$out/usr/share/common-licenses/"

# name, version, licence, supplier, purl: ours, what is compiled in, Debian's packages.
{
  printf '%s\t%s\tApache-2.0\tOrganization: lambdadnn\t-\n' "$name" "$version"
  cat "$out"/usr/share/lambdadnn/compiled_in/* | sed 's/$/\t-/'
  while read -r package; do
    dpkg-query -W -f='${Package}\t${Version}\tNOASSERTION\tOrganization: Debian\t${Architecture}\n' \
      "$package"
  done <"$work/sorted"
} >"$work/list"
rm -r "$out/usr/share/lambdadnn/compiled_in"

awk -F '\t' -v name="$name" -v version="$version" \
  -v created="$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)" \
  -v identity="$(sha256sum "$work/list" | cut -c1-16)" '
  function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
  function escaped(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text }
  BEGIN {
    printf "{\"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", "
    printf "\"SPDXID\": \"SPDXRef-DOCUMENT\", \"name\": %s,\n", quoted(name "-" version)
    printf " \"documentNamespace\": %s,\n",
      quoted("https://lambdadnn.io/spdx/" name "-" version "-" identity)
    printf " \"creationInfo\": {\"created\": %s, ", quoted(created)
    printf "\"creators\": [\"Tool: images/assemble.sh\"]},\n \"packages\": ["
  }
  {
    printf "%s\n  {\"SPDXID\": \"SPDXRef-%d\", \"name\": %s, ", (NR == 1 ? "" : ","), NR, quoted($1)
    printf "\"versionInfo\": %s, \"supplier\": %s, ", quoted($2), quoted($4)
    printf "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, "
    printf "\"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": %s, ", quoted($3)
    printf "\"copyrightText\": \"NOASSERTION\""
    if ($5 != "-") {
      printf ", \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", "
      printf "\"referenceType\": \"purl\", \"referenceLocator\": %s}]",
        quoted("pkg:deb/debian/" escaped($1) "@" escaped($2) "?arch=" $5)
    }
    printf "}"
  }
  END {
    printf "\n ],\n \"relationships\": [\n  {\"spdxElementId\": \"SPDXRef-DOCUMENT\", "
    printf "\"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-1\"}"
    for (i = 2; i <= NR; ++i) {
      printf ",\n  {\"spdxElementId\": \"SPDXRef-1\", \"relationshipType\": \"CONTAINS\", "
      printf "\"relatedSpdxElement\": \"SPDXRef-%d\"}", i
    }
    printf "\n ]}\n"
  }' "$work/list" >"$out/usr/share/lambdadnn/sbom.spdx.json"

find "$out" -exec touch -h -d "@$epoch" {} +
