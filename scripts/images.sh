#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The images of lambdadnn (operator, worker, server), built without a daemon from images/*/Dockerfile
# and from what is compiled here. Needs root on Debian 12; `docker build` needs neither
# (images/README.md).
#
#   scripts/images.sh build [NAME...]    compile, build, and write build/images/NAME.tar (OCI archives;
#                                        NAME-arm64.tar on amd64 for arm64); the three, or also
#                                        worker-gpu, of amd64 alone: 2.5 GB; operator-torch
#   scripts/images.sh list               the archives: name, platform, digest, compressed and unpacked size
#   scripts/images.sh measure            how fast they start and what they take, beside the aims; those of
#                                        another platform in qemu
#   scripts/images.sh push [NAME...]     copy the archives' images to --registry
#   scripts/images.sh clean              remove the archives, and those and the base in the cache
#
#   --platform P,...  linux/amd64, linux/arm64 or both: this machine's unless told. An amd64 machine compiles
#                     for arm64, and runs the Dockerfiles' other steps in qemu (scripts/setup.sh
#                     --images-arm64); push with both makes one list of images per name
#   --registry R      what the names begin with: dev.local, which is never looked up, unless told
#   --tag T           the project's version unless told
#   --preset P        build folder of operator and server: release; the worker's is upstream. Those for arm64
#                     on amd64 are arm64 and arm64-upstream
#   --reuse           take the archive of another commit where all that goes in is the same but the
#                     commit's name and time; it keeps those of the other
#   --no-compile      take the programs in the build folders as they are
#   --compile-inside  compile in the Dockerfile's own stage as `docker build` does, on Debian alone; for
#                     another platform the compiler runs in qemu, which takes hours
#   --fresh-base      make the base anew, with today's packages
#   --mirror URL      of Debian, for the base
#   --authfile FILE   for push: credentials as `buildah login` or `docker login` write them
#   --cert-dir DIR    for push: certificates of the registry's authority (*.crt)
#   --plain-http      for push: a registry without TLS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly NAMES=(operator worker server) ON_DEMAND=(operator-torch worker-gpu)
readonly SUITE=bookworm
readonly FOLDER=build/images
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/images

fail() { echo "error: $*" >&2; exit "${code:-1}"; }
usage() { code=2 fail "$*; see scripts/images.sh --help"; }

registry=dev.local tag='' platforms='' preset=release compile=1 inside=0 fresh=0 reuse=0 mirror='' push_options=() wanted=()
words=("$@")
command=${1:-}
case "$command" in
  build | list | measure | push | clean) shift ;;
  -h | --help) sed -n '3,32p' "$0" | cut -c3-; exit 0 ;;
  *) usage "unknown command '$command'" ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    --platform | --registry | --tag | --preset | --mirror | --authfile | --cert-dir)
      [ $# -ge 2 ] || usage "$1 needs a value" ;;&
    --platform) platforms=$2; shift ;;
    --registry) registry=$2; shift ;;
    --tag) tag=$2; shift ;;
    --preset) preset=$2; shift ;;
    --mirror) mirror=$2; shift ;;
    --authfile | --cert-dir) push_options+=("$1" "$2"); shift ;;
    --plain-http) push_options+=(--tls-verify=false) ;;
    --reuse) reuse=1 ;;
    --no-compile) compile=0 ;;
    --compile-inside) inside=1 ;;
    --fresh-base) fresh=1 ;;
    -*) usage "unknown option $1" ;;
    *)
      [[ " ${NAMES[*]} ${ON_DEMAND[*]} " = *" $1 "* ]] || usage "there is no image '$1', only ${NAMES[*]} ${ON_DEMAND[*]}"
      wanted+=("$1") ;;
  esac
  shift
done
if [ ${#wanted[@]} = 0 ]; then
  wanted=("${NAMES[@]}")
  [ "$command" != list ] || wanted+=("${ON_DEMAND[@]}")
fi
version=$(sed -n 's/^project(lambdadnn VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=${tag:-$version}

case "$(uname -m)" in
  aarch64) machine=arm64 ;;
  *) machine=amd64 ;;
esac
architectures=()
IFS=, read -ra platforms <<<"${platforms:-linux/$machine}"
for platform in "${platforms[@]}"; do
  [[ "$platform" = linux/amd64 || "$platform" = linux/arm64 ]] ||
    usage "there are no images for the platform '$platform', only for linux/amd64 and linux/arm64"
  [[ " ${architectures[*]} " = *" ${platform#linux/} "* ]] || architectures+=("${platform#linux/}")
done
# set_architecture A: what the functions below make images for.
set_architecture() {
  architecture=$1 suffix=''
  [ "$1" = "$machine" ] || suffix=-$1
}

# The same tree gives the same bits: nothing in an image knows the time, only the commit's.
revision=unknown epoch=0
if git rev-parse --git-dir >/dev/null 2>&1; then
  revision=$(git rev-parse HEAD)
  epoch=$(git log -1 --format=%ct)
  [ -z "$(git status --porcelain)" ] || revision=$revision-modified
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$epoch}

readonly POLICY=$cache/policy.json  # what is built here is not signed
run_buildah() {
  local verb=$1
  shift
  case "$verb" in
    commit | bud | push | pull) set -- --signature-policy "$POLICY" "$@" ;;
  esac
  # What the Dockerfiles cache while they compile lies there. Not at a target that is a folder above this
  # storage, such as ~/.cache: buildah 1.28 takes that for the stage's root afterwards, and empties it.
  TMPDIR=$cache/tmp buildah --root "$cache/storage" --runroot "$cache/run" --storage-driver vfs "$verb" "$@"
}

# One at a time: the storage is shared by all checkouts.
lock() {
  [ "$(id -u)" = 0 ] || fail "building images here needs root (mmdebstrap, buildah); or use docker build"
  mkdir -p "$cache/tmp"
  exec 9>"$cache/lock"
  flock -n 9 || { echo "waiting for another scripts/images.sh"; flock 9; }
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$POLICY"
}

# Programs of another architecture run in qemu: the kernel is told so until this script ends, unless it knows.
readonly BINFMT=/proc/sys/fs/binfmt_misc
# Where its table is not mounted, as without systemd, this script begins again with mounts of its own.
with_table_of_emulators() {
  [ "$(id -u)" = 0 ] && [ ! -e $BINFMT/register ] || return 0
  # shellcheck disable=SC2016
  exec unshare --mount bash -c 'mount -t binfmt_misc binfmt_misc "$0" && exec scripts/images.sh "$@" ||
    { echo "error: this kernel takes no emulator (binfmt_misc), which --platform linux/arm64 needs; build on a machine of arm64, or with docker buildx" >&2; exit 1; }' \
    $BINFMT "${words[@]}"
}
prepare_emulation() {
  local rule=/usr/lib/binfmt.d/qemu-aarch64.conf
  [ -e $BINFMT/qemu-aarch64 ] && return
  trap 'echo -1 >$BINFMT/qemu-aarch64' EXIT
  cat "$rule" >$BINFMT/register || fail "the kernel did not take $rule (binfmt_misc); is qemu-user-static installed?"
}

# make_base PACKAGES: Debian's minimal userland with these, separated by commas; sets `base`.
make_base() {
  local identity tar container authorities=/etc/ssl/certs/ca-certificates.crt
  identity=$(echo "$SUITE $1" | sha256sum | cut -c1-16)
  base=localhost/lambdadnn-base$suffix:$identity
  [ "$fresh" = 0 ] && run_buildah inspect "$base" >/dev/null 2>&1 && return
  tar=$cache/base.tar
  echo "making the base, Debian $SUITE for $architecture with ${1:-nothing more}"
  mmdebstrap --quiet --variant=minbase --mode=root --architectures="$architecture" ${1:+--include="$1"} "$SUITE" "$tar" \
    ${mirror:+"$mirror"} || fail "mmdebstrap could not make the base, see above; is Debian's mirror reachable? (--mirror URL)"
  container=$(run_buildah from scratch)
  run_buildah add -q "$container" "$tar" / >/dev/null
  # What is fetched inside comes from servers that this machine trusts, as behind a company's proxy.
  [[ -n "$1" || ! -f "$authorities" ]] ||
    run_buildah add -q "$container" "$authorities" /usr/local/share/ca-certificates/machine.crt >/dev/null
  run_buildah config --arch "$architecture" "$container"
  run_buildah commit -q --rm "$container" "$base" >/dev/null
  rm "$tar"
}
# All that the images take files from, so that assembling them installs nothing.
packages_of_images() { cat images/*/packages | sed 's/#.*//' | grep . | sort -u | paste -sd,; }

# install_tree NAME: the programs and data of an image, as they lie in it.
install_tree() {
  local tree=$FOLDER/$1/install part parts=$1
  [ "$1" != operator-torch ] || parts='operator worker'
  rm -rf "$tree"
  for part in $parts; do install_part "$part" "$tree"; done
}
install_part() {  # NAME TREE
  local from=$preset upstream=upstream targets
  [ -z "$suffix" ] || from=arm64 upstream=arm64-upstream
  case "$1" in
    operator) targets='lambdadnn lambdadnn-operator lambdadnn-dataset' ;;
    worker) targets=lambdadnn-worker from=$upstream ;;
    worker-gpu) targets=lambdadnn-worker from=upstream-cuda ;;
    *) targets=lambdadnn-$1 ;;
  esac
  if [ "$compile" = 1 ]; then
    [ "$1" = server ] || scripts/arrow.sh fetch ${suffix:+aarch64}
    [ -z "$suffix" ] || scripts/sysroot.sh make ${mirror:+--mirror "$mirror"}
    [ "$from" != "$upstream" ] || scripts/libtorch.sh fetch ${suffix:+aarch64}
    [ "$from" != upstream-cuda ] || scripts/libtorch.sh fetch --cuda
    # A build folder of before the fetch does not know of what was fetched.
    grep -qs liblambdadnn_parquet "build/$from/build.ninja" || cmake --preset "$from" >/dev/null
    # shellcheck disable=SC2086
    cmake --build "build/$from" --target $targets >"$FOLDER/compile.log" 2>&1 ||
      { tail -40 "$FOLDER/compile.log" >&2; fail "the programs of image $1 do not compile"; }
  fi
  cmake --install "build/$from" --component "${1%-gpu}" --strip --prefix "$2/usr" >/dev/null ||
    fail "the programs of image $1 are not in build/$from; leave out --no-compile"
}

# inputs_of NAME REFERENCE: a hash of all that an image is made of here, but for the commit's name and time.
inputs_of() {
  {
    echo "$2 $version $(run_buildah inspect --type image --format '{{.FromImageID}}' "$base") $(run_buildah --version)"
    sha256sum LICENSE images/{assemble.sh,install_packages.sh} images/"$1"/{Dockerfile,packages}
    cd "$FOLDER/$1/install"
    find . -printf '%y %m %p %l\n' | LC_ALL=C sort
    find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum
  } | sha256sum | cut -c1-32
}
# The newest archive of each name is kept with the hash of its inputs and the commit that it is of.
readonly KEPT=$cache/archives
reuse_archive() {  # NAME REFERENCE
  local hash commit
  [ "$reuse" = 1 ] && [ -f "$KEPT/$1$suffix.tar" ] || return
  read -r hash commit <"$KEPT/$1$suffix.inputs" && [ "$hash" = "$(inputs_of "$1" "$2")" ] || return
  cp "$KEPT/$1$suffix.tar" "$FOLDER/$1$suffix.tar.new"
  mv "$FOLDER/$1$suffix.tar.new" "$FOLDER/$1$suffix.tar"
  echo "$2: $FOLDER/$1$suffix.tar, of commit $commit: all that goes in is the same"
}
keep_archive() {  # NAME REFERENCE
  mkdir -p "$KEPT"
  rm -f "$KEPT/$1$suffix".*
  cp "$FOLDER/$1$suffix.tar" "$KEPT/$1$suffix.tar"
  echo "$(inputs_of "$1" "$2") $revision" >"$KEPT/$1$suffix.inputs"
}

# run_dockerfile NAME TAG OPTIONS...: makes an image, or one stage, of the name's Dockerfile.
run_dockerfile() {
  local name=$1 made=$2
  shift 2
  run_buildah bud --isolation chroot ${suffix:+--platform "linux/$architecture"} --timestamp "$SOURCE_DATE_EPOCH" --format oci --build-arg BASE="$base" \
    --build-arg VERSION="$version" --build-arg REVISION="$revision" \
    --build-arg SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "$@" \
    -t "$made" -f "images/$name/Dockerfile" . >>"$FOLDER/$name$suffix.log" 2>&1 ||
    { tail -20 "$FOLDER/$name$suffix.log" >&2; fail "image $name could not be built (all of it: $FOLDER/$name$suffix.log)"; }
}

# archive_of NAME REFERENCE: an OCI archive whose bytes depend on what is in it alone.
archive_of() {
  local layout
  layout=$(mktemp -d "$FOLDER/$1.XXXXXX")
  run_buildah push -q --format oci --compression-format gzip "$2" "oci:$layout:$2"
  if [[ "$1" = worker-gpu && "$inside" = 0 ]]; then
    python3 images/lowest_layer.py "$layout" "$LIBRARIES" || fail "the libraries could not be added to image $1"
    rm -r "$LIBRARIES"
  fi
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w \
    -C "$layout" -cf "$FOLDER/$1$suffix.tar.new" .
  rm -r "$layout"
  mv "$FOLDER/$1$suffix.tar.new" "$FOLDER/$1$suffix.tar"
}

build() {
  [[ "${wanted[*]} ${architectures[*]}" != *worker-gpu*arm64* ]] ||
    usage "the image worker-gpu is for linux/amd64 alone: NVIDIA's libraries are listed for it (scripts/cuda_wheels.txt)"
  if [ "${architectures[*]}" = "$machine" ]; then
    scripts/setup.sh --images
    lock
  else
    [ "$machine" = amd64 ] ||
      fail "images for linux/amd64 are not made on a machine of arm64; use docker buildx build --platform linux/amd64"
    with_table_of_emulators
    scripts/setup.sh --images-arm64
    lock
    prepare_emulation
  fi
  mkdir -p "$FOLDER"
  for each in "${architectures[@]}"; do
    set_architecture "$each"
    build_images
  done
}

# Of worker-gpu: LibTorch's and NVIDIA's libraries as the image has them, without a copy of them.
readonly LIBRARIES=$FOLDER/worker-gpu/libraries
link_libraries() {
  local fetched
  fetched=$(scripts/libtorch.sh path --cuda)
  rm -rf "$LIBRARIES"
  mkdir -p "$LIBRARIES/usr/lib"
  cp -al "$fetched/lib" "$LIBRARIES/usr/lib/lambdadnn" 2>/dev/null || {
    rm -rf "$LIBRARIES/usr/lib/lambdadnn"
    cp -a "$fetched/lib" "$LIBRARIES/usr/lib/lambdadnn"
  }
}

build_images() {
  local name reference begin compiled options packages=''
  [ "$inside" = 1 ] || packages=$(packages_of_images)
  make_base "$packages"
  for name in "${wanted[@]}"; do
    begin=$SECONDS reference=$registry/lambdadnn-$name:$tag
    : >"$FOLDER/$name$suffix.log"
    compiled="compiled-here" options=()
    if [ "$inside" = 1 ]; then
      # In two runs: buildah does not see that a stage is needed whose name is an argument.
      compiled=localhost/lambdadnn-$name-compiled
      run_dockerfile "$name" "$compiled" --target compile
    else
      install_tree "$name"
      if [ "$name" = worker-gpu ]; then
        link_libraries
        options=(--build-context "libraries=$PWD/$LIBRARIES" --build-arg LOWEST=scratch)
      fi
      if reuse_archive "$name" "$reference"; then continue; fi
    fi
    run_dockerfile "$name" "$reference" --build-arg COMPILED="$compiled" "${options[@]}"
    [ "$inside" = 0 ] || run_buildah rmi -f "$compiled" >/dev/null
    archive_of "$name" "$reference"
    # One of gigabytes is not kept twice.
    [[ "$inside" = 1 || "$name" = worker-gpu ]] || keep_archive "$name" "$reference"
    run_buildah rmi -f "$reference" >/dev/null
    run_buildah rmi --prune -f >/dev/null 2>&1 || true
    echo "$reference: $FOLDER/$name$suffix.tar, $((SECONDS - begin)) s"
  done
}

list() {
  local name archive archives=()
  for name in "${wanted[@]}"; do
    for archive in "$FOLDER/$name.tar" "$FOLDER/$name"-{amd64,arm64}.tar; do
      [ ! -f "$archive" ] || archives+=("$archive")
    done
  done
  [ ${#archives[@]} -gt 0 ] || fail "no image is built; run scripts/images.sh build"
  python3 images/archive.py "${archives[@]}"
}

measure() {
  local each
  for each in "${architectures[@]}"; do
    set_architecture "$each"
    [ -f "$FOLDER/worker$suffix.tar" ] || fail "no image is built; run scripts/images.sh build --platform linux/$each"
    /usr/bin/python3 tests/images/measure.py "$each"
  done
}

push() {
  [ "$registry" != dev.local ] || usage "dev.local is no registry; name yours with --registry"
  lock
  local name each images list=localhost/lambdadnn-pushed
  for name in "${wanted[@]}"; do
    images=()
    for each in "${architectures[@]}"; do
      set_architecture "$each"
      [ -f "$FOLDER/$name$suffix.tar" ] ||
        fail "$FOLDER/$name$suffix.tar is not there; run scripts/images.sh build --platform linux/$each $name"
      images+=("$(run_buildah pull -q --platform "linux/$each" "oci-archive:$FOLDER/$name$suffix.tar")")
    done
    if [ ${#images[@]} = 1 ]; then
      run_buildah push --format oci "${push_options[@]}" "${images[0]}" "docker://$registry/lambdadnn-$name:$tag"
    else
      run_buildah rmi "$list" >/dev/null 2>&1 || true
      run_buildah manifest create "$list" "${images[@]}" >/dev/null
      run_buildah manifest push --all --format oci "${push_options[@]}" "$list" "docker://$registry/lambdadnn-$name:$tag"
      run_buildah manifest rm "$list" >/dev/null
    fi
    run_buildah rmi -f "${images[@]}" >/dev/null
    echo "$registry/lambdadnn-$name:$tag"
  done
}

clean() {
  lock
  rm -rf "$FOLDER" "$KEPT" "$cache/storage" "$cache/run" "$cache/tmp"
}
"$command"
