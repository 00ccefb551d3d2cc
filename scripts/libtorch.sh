#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The upstream LibTorch for builds with LAMBDADNN_TORCH_SOURCE=upstream, as the worker's image has it:
# headers, libraries and the licences of PyPI's torch wheel, below the cache folder.
#
#   scripts/libtorch.sh fetch [x86_64|aarch64]    download it once (540 MB, of which 510 stay), and check it
#   scripts/libtorch.sh path [x86_64|aarch64]     print the folder that it is or would be in
#
# It is this machine's architecture unless told.
set -euo pipefail

readonly VERSION=2.15.0
readonly PYTHON=311

fail() { echo "error: $*" >&2; exit 1; }

# What a program on CPUs loads; for aarch64 its BLAS (NVPL) and the Arm Compute Library are files of their own.
architecture=${2:-$(uname -m)}
libraries=(libtorch_cpu.so libc10.so)
case "$architecture" in
  x86_64) sha256=48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e ;;
  aarch64)
    sha256=58ce2ebfb3430941353109a85be63ee8e941da22f13daa2c43344eeb51c81e06
    libraries+=(libarm_compute.so libarm_compute_graph.so)
    libraries+=(libnvpl_{blas,lapack}_{core,lp64_gomp}.so.0) ;;
  *) fail "the upstream LibTorch is for x86_64 and aarch64, not for $architecture; use the distribution's (LAMBDADNN_TORCH_SOURCE=system)" ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/libtorch-$VERSION-${sha256:0:8}

fetch() {
  [ -f "$folder/version" ] && return
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is needed to fetch LibTorch; run scripts/setup.sh --images"
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching LibTorch $VERSION for $architecture into $folder"
  echo "torch==$VERSION --hash=sha256:$sha256" >"$work/requirements"
  python3 -m pip download --quiet --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    --python-version $PYTHON --implementation cp --abi cp$PYTHON --platform "manylinux_2_28_$architecture" \
    --dest "$work" -r "$work/requirements" >&2 || fail "pip could not fetch torch $VERSION, see above; is a package index reachable?"
  python3 - "$work" "${libraries[@]}" <<'EOF'
import pathlib, sys, zipfile
work, libraries = pathlib.Path(sys.argv[1]), [f"torch/lib/{name}" for name in sys.argv[2:]]
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        folder, _, rest = name.partition("/")
        if name in libraries:
            target = work / "new/lib" / pathlib.Path(name).name
        elif name.startswith("torch/include/"):
            target = work / "new" / rest
        elif folder.endswith(".dist-info") and rest.startswith("licenses/"):
            target = work / "new" / rest
        else:
            continue
        if not name.endswith("/"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
EOF
  echo "$VERSION" >"$work/new/version"
  rm -rf "$folder"
  mv "$work/new" "$folder"
}

case "${1:-}" in
  fetch) fetch ;;
  path) echo "$folder" ;;
  -h | --help) sed -n '3,9p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${1:-}'; see scripts/libtorch.sh --help" >&2; exit 2 ;;
esac
