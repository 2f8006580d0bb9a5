#!/usr/bin/env bash
# An AArch64 wheel by a cross compiler, and the tests with it under emulation, on x86-64 without containers:
#
#   tools/aarch64.sh make FOLDER            a Debian 12 of AArch64 in FOLDER, with what the tests need
#   tools/aarch64.sh wheel FOLDER           the wheel, in build/aarch64 and installed in FOLDER
#   tools/aarch64.sh run FOLDER COMMAND ... run a command there, on one processor of QEMU
#
# It needs Debian's debootstrap, gcc-aarch64-linux-gnu, proot and qemu-user-static, and a `.venv` of CPython 3.11
# as `make` makes it, since that is Debian 12's.
set -euo pipefail
work=$1
folder=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
site=$folder/root/site

install_there() {
    local tags=()
    for tag in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28 linux; do
        tags+=(--platform "${tag}_aarch64")
    done
    "$python" -m pip install --quiet --upgrade --target "$site" --only-binary :all: \
        --python-version 3.11 --implementation cp "${tags[@]}" "$@"
}

make_root() {
    debootstrap --foreign --arch=arm64 --variant=minbase \
        --include=python3,libpython3.11-dev,libgomp1 bookworm "$folder"
    # The second stage would run programs of AArch64: unpacking is enough.
    for package in "$folder"/var/cache/apt/archives/*.deb; do
        dpkg -x "$package" "$folder"
    done
    install_there numpy ml_dtypes scipy pytest mpmath hypothesis jsonschema threadpoolctl rich jinja2
}

wheel() {
    # Headers and settings of that Python, by a folder of their own: other headers there are not the compiler's.
    local settings=$PWD/build/aarch64/settings headers=$folder/usr/include
    mkdir -p "$settings"
    cp "$folder"/usr/lib/python3.11/_sysconfigdata__linux_aarch64-linux-gnu.py "$settings"
    ln -sfn "$headers/aarch64-linux-gnu" "$settings/aarch64-linux-gnu"
    _PYTHON_HOST_PLATFORM=linux-aarch64 PYTHONPATH=$settings \
        _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__linux_aarch64-linux-gnu \
        CC=aarch64-linux-gnu-gcc CFLAGS="-DNDEBUG -I$settings -I$headers/python3.11" \
        "$python" -m build --wheel --no-isolation --outdir build/aarch64
    install_there --no-index --no-deps build/aarch64/*.whl
}

# QEMU's default processor has SVE, for which OpenBLAS's kernels raise what NumPy warns of. PRoot says of every
# folder that it cannot be written, which Hypothesis warns of.
run() {
    proot -q qemu-aarch64-static -r "$folder" -b /dev -b /proc -b /sys -w /root env -i HOME=/root \
        PATH=/usr/bin:/bin PYTHONPATH=/root/site LC_ALL=C.UTF-8 \
        QEMU_CPU="${QEMU_CPU:-neoverse-n1}" \
        PYTEST_ADDOPTS="-W ignore::hypothesis.errors.HypothesisWarning" "$@"
}

case $work in
    make) make_root ;;
    wheel) wheel ;;
    run) run "$@" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 1 ;;
esac
