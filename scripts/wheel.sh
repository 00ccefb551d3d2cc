# SPDX-License-Identifier: Apache-2.0
# What scripts/libtorch.sh and scripts/arrow.sh share: a part of a wheel of PyPI in the cache folder.
# shellcheck shell=bash

fail() { echo "error: $*" >&2; exit 1; }

# take_wheel INTO PACKAGE VERSION SHA256 ARCHITECTURE FOLDER LICENSES FILE...: downloads a wheel and keeps of it
# in INTO/lib those FILEs (paths below the wheel's FOLDER), the headers of that folder, and the licences in
# INTO/LICENSES.
take_wheel() {
  local into=$1 package=$2 version=$3 sha256=$4 architecture=$5 python=311 glibc platforms=()
  shift 5
  python3 -m pip --version >/dev/null 2>&1 || fail "pip is needed to fetch $package; run scripts/setup.sh --build"
  # pip compares names alone: what is for an older glibc has another one.
  for glibc in $(seq -f manylinux_2_%g 28 -1 17) manylinux2014; do platforms+=(--platform "${glibc}_$architecture"); done
  mkdir -p "$into/wheel"
  echo "$package==$version --hash=sha256:$sha256" >"$into/wheel/requirements"
  python3 -m pip download --quiet --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    --python-version $python --implementation cp --abi cp$python "${platforms[@]}" \
    --dest "$into/wheel" -r "$into/wheel/requirements" >&2 ||
    fail "pip could not fetch $package $version, see above; is a package index reachable?"
  python3 - "$into" "$@" <<'EOF'
import pathlib, sys, zipfile
into, package, licenses, files = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], set(sys.argv[4:])
with zipfile.ZipFile(next(into.glob("wheel/*.whl"))) as wheel:
    for name in wheel.namelist():
        folder, _, rest = name.partition("/")
        if folder == package and rest in files:
            target = into / "lib" / pathlib.Path(name).name
            files.remove(rest)
        elif folder == package and rest.startswith("include/"):
            target = into / rest
        elif folder.endswith(".dist-info") and rest.lower().startswith("licen"):
            target = into / licenses / rest.removeprefix("licenses/")
        elif folder == package and rest.count("/") == 1 and rest.lower().endswith("/license.txt"):
            target = into / licenses / pathlib.Path(rest).name
        else:
            continue
        if not name.endswith("/"):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wheel.read(name))
if files:
    sys.exit(f"error: the wheel has no {', '.join(sorted(files))}")
EOF
  rm -r "$into/wheel"
}

# keep_wheel FOLDER PACKAGE VERSION SHA256 ARCHITECTURE FILE...: the same for a FOLDER in the cache, of the wheel's
# folder PACKAGE, unless it is there. Leaves it to `finish FOLDER`, if there is such a function, to change what it
# likes before the folder counts.
keep_wheel() {
  local folder=$1 package=$2 version=$3 sha256=$4 architecture=$5
  shift 5
  [ -f "$folder/version" ] && return
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching $package $version for $architecture into $folder"
  take_wheel "$work/new" "$package" "$version" "$sha256" "$architecture" "$package" licenses "$@"
  ! declare -F finish >/dev/null || finish "$work/new"
  echo "$version" >"$work/new/version"
  rm -rf "$folder"
  mv "$work/new" "$folder"
}
