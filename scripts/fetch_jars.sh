#!/bin/sh
# Fetches what Spark needs to read and write Kafka, and a Kafka broker for the tests, into .venv/jars. Needs Maven.
# Called by hand or by the tests; what is there already is not fetched again. Where the registry does not have the
# connector of the Spark that is installed, that of the minor version before it is taken, and this is said.
set -eu
cd "$(dirname "$0")/.."

JARS=${1:-.venv/jars}
PYTHON=${PYTHON:-.venv/bin/python}
SCALA=2.13
KAFKA=3.9.2
POOL=2.12.1

say() { printf 'jars: %s\n' "$@"; }
die() { say "$@" >&2; exit 1; }

maven() { mvn --batch-mode --quiet "$@" >"$work/log" 2>&1; }

copy() { # Copies the artifacts group:name:version in $2… into the folder $1, without what they need.
    folder=$1
    shift
    for artifact in "$@"; do
        maven dependency:copy -Dartifact="$artifact" -DoutputDirectory="$folder" || return 1
    done
}

copy_all() { # Copies the artifact group:name:version in $2 and what it needs into the folder $1.
    group=${2%%:*} rest=${2#*:}
    cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>$group</groupId><artifactId>${rest%%:*}</artifactId><version>${rest#*:}</version>
  </dependency></dependencies>
</project>
POM
    maven --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1"
}

newest() { # Copies the part $2 of Spark into the folder $1: of this Spark or else of an earlier minor version.
    version=$spark major=${spark%%.*} minor=${spark#*.} minor=${minor%%.*}
    until copy "$1" "org.apache.spark:$2_$SCALA:$version"; do
        [ "$minor" -gt 0 ] || return 1
        minor=$((minor - 1))
        say "$2 of Spark $version is not to be had; trying that of $major.$minor.0"
        version=$major.$minor.0
    done
}

connector() { # Spark itself brings the rest of what it needs.
    newest "$1" spark-sql-kafka-0-10 && newest "$1" spark-token-provider-kafka-0-10 &&
        copy "$1" "org.apache.kafka:kafka-clients:$KAFKA" "org.apache.commons:commons-pool2:$POOL"
}

command -v mvn >/dev/null 2>&1 || die "Maven was not found (on Debian, as root: apt-get install maven)"
spark=$("$PYTHON" -c 'import pyspark; print(pyspark.__version__)')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$JARS"
if [ ! -d "$JARS/connector" ]; then
    connector "$work/connector" || { cat "$work/log" >&2; die "Spark's Kafka connector could not be fetched"; }
    mv "$work/connector" "$JARS/connector"
fi
if [ ! -d "$JARS/broker" ]; then
    copy_all "$work/broker" "org.apache.kafka:kafka_$SCALA:$KAFKA" ||
        { cat "$work/log" >&2; die "the Kafka broker could not be fetched"; }
    mv "$work/broker" "$JARS/broker"
fi
say "in $JARS: $(cd "$JARS/connector" && echo spark-*), Kafka $KAFKA"
