#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The upstream LibTorch for builds with LAMBDADNN_TORCH_SOURCE=upstream, as the worker's image has it:
# headers, two libraries and the licences of PyPI's torch wheel (x86-64), below the cache folder.
#
#   scripts/libtorch.sh fetch    download it once (540 MB, of which 510 stay), and check it
#   scripts/libtorch.sh path     print the folder that it is or would be in
set -euo pipefail

readonly VERSION=2.15.0
readonly SHA256=48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e
readonly PYTHON=311 PLATFORM=manylinux_2_28_x86_64
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lambdadnn/libtorch-$VERSION-${SHA256:0:8}

fail() { echo "error: $*" >&2; exit 1; }

fetch() {
  [ -f "$folder/version" ] && return
  [ "$(uname -m)" = x86_64 ] || fail "the upstream LibTorch is for x86-64, this machine is $(uname -m); use the distribution's (LAMBDADNN_TORCH_SOURCE=system)"
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is needed to fetch LibTorch; run scripts/setup.sh --images"
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching LibTorch $VERSION into $folder"
  echo "torch==$VERSION --hash=sha256:$SHA256" >"$work/requirements"
  python3 -m pip download --quiet --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    --python-version $PYTHON --implementation cp --abi cp$PYTHON --platform $PLATFORM \
    --dest "$work" -r "$work/requirements" >&2 || fail "pip could not fetch torch $VERSION, see above; is a package index reachable?"
  python3 - "$work" <<'EOF'
import pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        folder, _, rest = name.partition("/")
        if name in ("torch/lib/libtorch_cpu.so", "torch/lib/libc10.so"):
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
  -h | --help) sed -n '3,7p' "$0" | cut -c3- ;;
  *) echo "error: unknown command '${1:-}'; see scripts/libtorch.sh --help" >&2; exit 2 ;;
esac
