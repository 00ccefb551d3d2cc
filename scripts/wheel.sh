# SPDX-License-Identifier: Apache-2.0
# What scripts/libtorch.sh and scripts/arrow.sh share: a part of a wheel of PyPI in the cache folder.
# shellcheck shell=bash

fail() { echo "error: $*" >&2; exit 1; }

# keep_wheel FOLDER PACKAGE VERSION SHA256 ARCHITECTURE FILE...: downloads the wheel, unless FOLDER is there,
# and keeps of it in FOLDER/lib those FILEs (paths below the package's folder), and the headers and licences.
# Leaves it to `finish FOLDER`, if there is such a function, to change what it likes before the folder counts.
keep_wheel() {
  local folder=$1 package=$2 version=$3 sha256=$4 architecture=$5 python=311
  shift 5
  [ -f "$folder/version" ] && return
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is needed to fetch $package; run scripts/setup.sh --build"
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching $package $version for $architecture into $folder"
  echo "$package==$version --hash=sha256:$sha256" >"$work/requirements"
  python3 -m pip download --quiet --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    --python-version $python --implementation cp --abi cp$python --platform "manylinux_2_28_$architecture" \
    --dest "$work" -r "$work/requirements" >&2 || fail "pip could not fetch $package $version, see above; is a package index reachable?"
  python3 - "$work" "$package" "$@" <<'EOF'
import pathlib, sys, zipfile
work, package, files = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        folder, _, rest = name.partition("/")
        if folder == package and rest in files:
            target = work / "new/lib" / pathlib.Path(name).name
        elif folder == package and rest.startswith("include/"):
            target = work / "new" / rest
        elif folder.endswith(".dist-info") and rest.startswith("licenses/"):
            target = work / "new" / rest
        else:
            continue
        if not name.endswith("/"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
EOF
  ! declare -F finish >/dev/null || finish "$work/new"
  echo "$version" >"$work/new/version"
  rm -rf "$folder"
  mv "$work/new" "$folder"
}
