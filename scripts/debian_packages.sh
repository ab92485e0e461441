#!/bin/sh
# What the tests and the load benchmark of the web server take from Debian: a browser, PostgreSQL's own server, a load generator.
# Installs what is missing where it can: as root, with apt. Where it cannot it says so and ends well: tests that need it are skipped, with the reason.
set -u

missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium fonts-noto-cjk"
command -v chromium-headless-shell >/dev/null 2>&1 || missing="$missing chromium-headless-shell"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
command -v wrk >/dev/null 2>&1 || missing="$missing wrk"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$missing (apt-get as root would do it); tests that need them are skipped" >&2
    exit 0
fi

# Tests start servers of their own: Debian's is not to begin one, which takes a port and a data folder.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf

export DEBIAN_FRONTEND=noninteractive
install() {
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
install 2>/dev/null || { apt-get update -qq && install; } || echo "apt-get could not install:$missing; tests that need them are skipped" >&2
exit 0
